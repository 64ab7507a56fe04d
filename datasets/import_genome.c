/* Visual Genome's region descriptions: every region's phrase is a caption of its picture. */
#include "core/file.h"
#include "datasets/json_scan.h"
#include "datasets/numbered.h"
#include "datasets/session.h"

#include <stdio.h>
#include <string.h>

typedef struct {
    vlp_session *session;
    vlp_numbered numbered;
    vlp_buf scratch, name;
    int64_t pictures, regions;
} genome_run;

static vlp_status add_regions(genome_run *run, const vlp_json *object, int64_t row) {
    const vlp_json *regions = vlp_json_key(object, "regions");
    int64_t number = vlp_json_int(object, "id", -1), id;
    if (number < 0) number = vlp_json_int(object, "image_id", -1);
    if (number < 0) number = vlp_json_int(vlp_json_at(regions, 0), "image_id", -1);
    if (number < 0 || !vlp_json_is_array(regions))
        return vlp_session_skip(run->session, vlp_session_source(run->session), row,
                                VLP_SKIP_BAD_ROW, "no picture number, or no regions");
    bool found;
    VLP_TRY(vlp_numbered_name(&run->numbered, vlp_session_root(run->session), number, "",
                              &run->name, &found));
    vlp_session_image image = {.row = row};
    VLP_TRY(vlp_session_named_image(run->session, run->name.data, &image, &id));
    if (!id) return VLP_OK;
    run->pictures++;
    for (size_t i = 0; i < vlp_json_len(regions); i++) {
        const char *text = vlp_json_string(vlp_json_at(regions, i), "phrase", "");
        VLP_TRY(vlp_session_caption(run->session, id, text, strlen(text), "region", row));
        run->regions++;
    }
    return VLP_OK;
}

static vlp_status each_picture(const char *text, size_t len, int64_t number, void *user) {
    genome_run *run = user;
    vlp_json *object;
    vlp_status status = vlp_json_parse_repaired(&object, text, len, "element", &run->scratch);
    if (status == VLP_ERR_MEMORY) return status;
    if (status != VLP_OK)
        return vlp_session_skip(run->session, vlp_session_source(run->session), number,
                                VLP_SKIP_BAD_ROW, vlp_error());
    status = add_regions(run, object, number);
    vlp_json_free(object);
    return status;
}

static vlp_status genome_import(vlp_session *session) {
    genome_run run = {.session = session};
    vlp_map map;
    VLP_TRY(vlp_map_open(&map, vlp_session_source(session)));
    vlp_status status = vlp_json_each(map.len ? (const char *)map.data : "", map.len,
                                      vlp_session_source(session), each_picture, &run);
    vlp_map_close(&map);
    vlp_import_report *report = vlp_session_report(session);
    snprintf(report->recognised, sizeof report->recognised,
             "%s: genome, %lld pictures with %lld regions", vlp_session_source(session),
             (long long)run.pictures, (long long)run.regions);
    vlp_buf_free(&run.scratch);
    vlp_buf_free(&run.name);
    return status;
}

static int genome_sniff(const char *path, bool is_folder, const char *head, size_t len) {
    (void)path, (void)len;
    return !is_folder && strstr(head, "\"regions\"") && strstr(head, "\"phrase\"") ? 94 : 0;
}

const vlp_importer vlp_importer_genome = {"genome", genome_sniff, genome_import};
