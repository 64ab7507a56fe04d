/* A CLIP ViT-B/32 of full size with random weights (605 MB in TMPDIR): how long it takes to open,
 * how much memory that and encoding need, and how many pictures a second it encodes. Skipped (77)
 * where the disk is short. */
#include "core/file.h"
#include "core/gemm.h"
#include "fusion/clip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SKIP = 77, BATCH = 8, ROUNDS = 4 };

/* Hugging Face's defaults are those of ViT-B/32. */
static const char config_text[] = "{\"model_type\": \"clip\"}";

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double peak_bytes(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return 1024.0 * (double)usage.ru_maxrss;
}

static int failed(const char *what) {
    fprintf(stderr, "%s: %s\n", what, vlp_error());
    return 1;
}

/* The names and shapes of Hugging Face's file. */
static size_t make_specs(const vlp_model *model, vlp_name_target *targets,
                         vlp_safetensor_spec *specs) {
    vlp_name_map map = {0};
    size_t n = 0;
    vlp_clip_names_of(&map, &model->config, VLP_CLIP_HF);
    for (int i = 0; i < model->params->count; i++) {
        const vlp_tensor *ours = &model->params->items[i]->tensor;
        int parts = vlp_name_targets(&map, model->params->items[i]->name, &targets[n]);
        for (int k = 0; k < parts; k++, n++) {
            specs[n] = (vlp_safetensor_spec){
                .name = targets[n].name, .dtype = VLP_ST_F32, .ndim = ours->ndim};
            for (int d = 0; d < ours->ndim; d++) specs[n].shape[d] = ours->shape[d];
            if (parts > 1) specs[n].shape[0] /= parts;
        }
    }
    return n;
}

static vlp_status write_random(const vlp_safetensor_spec *specs, size_t n, const char *path) {
    enum { PIECE = 4096 };
    vlp_real values[PIECE];
    vlp_safetensors_writer *writer;
    for (int i = 0; i < PIECE; i++) values[i] = (vlp_real)(0.02 * sin(1.7 * i));
    VLP_TRY(vlp_safetensors_writer_begin(&writer, path, specs, n, NULL, 0));
    for (size_t i = 0; i < n; i++) {
        int64_t left = 1;
        for (int d = 0; d < specs[i].ndim; d++) left *= specs[i].shape[d];
        for (; left > 0; left -= PIECE)
            VLP_TRY(vlp_safetensors_writer_real(writer, values, left < PIECE ? left : PIECE));
    }
    return vlp_safetensors_writer_commit(writer);
}

static vlp_status write_model(const char *folder) {
    vlp_model_config config;
    vlp_model *model = NULL;
    vlp_json *json = NULL;
    vlp_buf path = {0};
    static vlp_name_target targets[2048];
    static vlp_safetensor_spec specs[2048];
    vlp_status status;
    VLP_TRY_DONE(vlp_json_parse(&json, config_text, strlen(config_text), "config.json"));
    VLP_TRY_DONE(vlp_clip_config_read(&config, json, "config.json"));
    VLP_TRY_DONE(vlp_model_new_parts(&model, &config, VLP_MODEL_SPACE | VLP_MODEL_SCALE));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "config.json"));
    VLP_TRY_DONE(vlp_json_save(json, path.data));
    VLP_TRY_DONE(vlp_path_join(&path, folder, "model.safetensors"));
    status = write_random(specs, make_specs(model, targets, specs), path.data);
done:
    vlp_json_free(json);
    vlp_model_free(model);
    vlp_buf_free(&path);
    return status;
}

static vlp_tensor *encode(vlp_tape *tape, const vlp_model *model, const vlp_real *pixels) {
    int64_t side = model->config.vision.image_height, shape[] = {BATCH, 3, side, side};
    vlp_tape_begin(tape, 0, 0);
    vlp_tape_set_grad(tape, false);
    vlp_tensor *x = vlp_tape_input(tape, VLP_REAL, 4, shape, pixels, false);
    return vlp_model_image_embedding(tape, model, vlp_model_image_tokens(tape, model, x));
}

static vlp_status measure_encoding(const vlp_model *model, double *images_per_s) {
    int64_t side = model->config.vision.image_height;
    vlp_tape *tape = NULL;
    vlp_status status;
    vlp_real *pixels = vlp_alloc_zero((size_t)(BATCH * 3 * side * side), sizeof *pixels);
    VLP_TRY_DONE(pixels ? VLP_OK : VLP_ERR_MEMORY);
    VLP_TRY_DONE(vlp_tape_new(&tape));
    VLP_TRY_DONE(vlp_tape_plan(tape));
    encode(tape, model, pixels);
    VLP_TRY_DONE(vlp_tape_open(tape, 1 << 20));
    encode(tape, model, pixels);
    double least = INFINITY; /* the round that others disturbed least */
    for (int i = 0; i < ROUNDS; i++) {
        double start = now();
        encode(tape, model, pixels);
        least = fmin(least, now() - start);
    }
    *images_per_s = BATCH / least;
    status = vlp_tape_status(tape);
done:
    vlp_tape_free(tape);
    vlp_free(pixels);
    return status;
}

/* In a process of its own, so that its peak is that of opening and encoding alone. */
static int measure(const char *folder, double file_bytes) {
    vlp_model *model;
    double start = now(), rate = 0;
    if (vlp_model_open(&model, folder) != VLP_OK) return failed("open");
    double seconds = now() - start, opened = peak_bytes();
    if (measure_encoding(model, &rate) != VLP_OK) return failed("encode");
    double peak = peak_bytes();
    vlp_model_free(model);
    printf("opened in %.2f s; peak %.0f MB (%.2f x the file), %.0f MB (%.2f x) with encoding; "
           "%.1f images/s\n",
           seconds, opened / 1e6, opened / file_bytes, peak / 1e6, peak / file_bytes, rate);
    return peak <= 1.2 * file_bytes ? 0 : 1;
}

static int run(const char *self, const char *folder) {
    char size[40], path[300];
    vlp_map map;
    if (write_model(folder) != VLP_OK) return failed("write");
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    if (vlp_map_open(&map, path) != VLP_OK) return failed("map");
    snprintf(size, sizeof size, "%zu", map.len);
    printf("%.0f MB written\n", (double)map.len / 1e6);
    fflush(stdout);
    vlp_map_close(&map);
    pid_t child = fork();
    if (child == 0) {
        execl(self, self, folder, size, (char *)NULL);
        _exit(1);
    }
    int status = 1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

int main(int argc, char **argv) {
    const char *base = getenv("TMPDIR");
    char folder[200], path[300];
    struct statvfs disk;
    if (vlp_gemm_cure(argc, argv) != VLP_OK) return failed("gemm");
    if (argc == 3) return measure(argv[1], strtod(argv[2], NULL));
    if (statvfs(base ? base : "/tmp", &disk) != 0 ||
        (double)disk.f_bavail * (double)disk.f_frsize < 2e9) {
        puts("less than 2 GB free: skipped");
        return SKIP;
    }
    snprintf(folder, sizeof folder, "%s/vlp-clip-b32-XXXXXX", base ? base : "/tmp");
    if (!mkdtemp(folder)) return 1;
    int code = run(argv[0], folder);
    static const char *const files[] = {"config.json", "model.safetensors"};
    for (size_t i = 0; i < VLP_COUNT(files); i++) {
        snprintf(path, sizeof path, "%s/%s", folder, files[i]);
        remove(path);
    }
    remove(folder);
    return code;
}
