/* One sample: from a position to pixels and tokens. */
#include "datasets/loader_state.h"

#include <string.h>

/* How many rows in a row may be bad before the run gives up. */
enum { MAX_SUBSTITUTES = 1000 };

static bool known_bad(vlp_loader *loader, int64_t id) {
    pthread_mutex_lock(&loader->lock);
    bool bad = vlp_bitset_has(&loader->bad, id);
    pthread_mutex_unlock(&loader->lock);
    return bad;
}

static void note_bad(vlp_loader *loader, const vlp_located *located) {
    pthread_mutex_lock(&loader->lock);
    bool first = !vlp_bitset_has(&loader->bad, located->id) &&
                 vlp_bitset_add(&loader->bad, located->id) == VLP_OK;
    loader->skipped += first;
    pthread_mutex_unlock(&loader->lock);
    if (first && loader->options.skipped)
        loader->options.skipped(located->path, vlp_error(), loader->options.user);
}

/* The same picture from the file, from memory, or decoded. */
static vlp_status find_pixels(loader_worker *w, const vlp_located *located, vlp_image *picture) {
    vlp_loader *loader = w->loader;
    bool train = loader->options.train, encoded = located->stored != VLP_STORED_GREY;
    if (train && vlp_pixel_file_get(loader->pixel_file, located->hash, picture)) return VLP_OK;
    if (train && vlp_pixel_cache_get(loader->cache, located->id, picture)) return VLP_OK;
    VLP_TRY(vlp_reader_pixels(w->reader, located, &loader->decode, loader->short_side, &w->image));
    *picture = w->image;
    if (train && encoded) vlp_pixel_cache_put(loader->cache, located->id, picture);
    return VLP_OK;
}

static vlp_status fill_pixels(loader_worker *w, const vlp_located *located,
                              const vlp_transform *transform, vlp_rng rng, float *out) {
    vlp_image picture;
    VLP_TRY(find_pixels(w, located, &picture));
    return vlp_transform_apply(transform, &picture, w->loader->options.train ? &rng : NULL,
                               &w->transform, out);
}

/* A caption with sides decides whether its picture may be mirrored, or is mirrored with it. */
static vlp_status settle_sides(loader_worker *w, vlp_caption_row *caption, vlp_rng *rng,
                               const vlp_transform **transform) {
    vlp_loader *loader = w->loader;
    const vlp_loader_options *o = &loader->options;
    double flip = o->transform ? o->transform->augment.flip : 0;
    if (!o->train || flip <= 0 || o->sides == VLP_SIDES_IGNORE) return VLP_OK;
    if (!vlp_has_sides(caption->text, caption->len)) return VLP_OK;
    bool turned = o->sides == VLP_SIDES_MIRROR && vlp_rng_double(rng) < flip;
    *transform = turned ? &loader->mirrored : &loader->upright;
    if (!turned) return VLP_OK;
    VLP_TRY(vlp_mirror_sides(&w->mirrored, caption->text, caption->len));
    caption->text = w->mirrored.data;
    caption->len = w->mirrored.len;
    return VLP_OK;
}

/* [CLS] question [SEP] answer [SEP]; a question that leaves no room is cut. */
static void fill_answer(const vlp_tokenizer *tokenizer, const vlp_caption_row *row, int length,
                        int32_t *ids, uint8_t *mask) {
    int n = vlp_tokenizer_encode_pair(tokenizer, (vlp_text){row->text, row->len},
                                      (vlp_text){row->answer, row->answer_len},
                                      VLP_TRUNCATE_LONGEST, ids, NULL, length);
    int32_t pad = vlp_tokenizer_special(tokenizer).pad;
    if (n < 0) n = vlp_tokenizer_encode(tokenizer, row->text, row->len, true, ids, length);
    for (int i = 0; i < length; i++) {
        mask[i] = i < n;
        if (i >= n) ids[i] = pad < 0 ? 0 : pad;
    }
}

static void fill_tokens(const vlp_loader *loader, loader_slot *slot, int j,
                        const vlp_caption_row *caption) {
    int length = loader->options.text_length;
    slot->caption_ids[j] = caption->id;
    slot->caption_groups[j] = caption->group;
    const vlp_tokenizer *tokenizer = loader->options.tokenizer;
    if (!tokenizer) return;
    int32_t *ids = slot->token_ids + (int64_t)j * length;
    uint8_t *mask = slot->attention_mask + (int64_t)j * length;
    if (caption->answer)
        fill_answer(tokenizer, caption, length, ids, mask);
    else
        vlp_tokenizer_encode_padded(tokenizer, caption->text, caption->len, length, ids, mask);
}

static vlp_status fill_text(loader_worker *w, loader_slot *slot, int j, int64_t caption_id) {
    vlp_caption_row caption;
    VLP_TRY(vlp_reader_caption(w->reader, caption_id, &caption));
    fill_tokens(w->loader, slot, j, &caption);
    slot->image_ids[j] = caption.image_id;
    slot->groups[j] = 0;
    if (!caption.image_id) return VLP_OK;
    vlp_located located;
    VLP_TRY(vlp_reader_locate(w->reader, caption.image_id, &located));
    slot->groups[j] = located.group;
    return VLP_OK;
}

/* A row is an image, whose caption is drawn, a caption, or a question, whose answer is drawn. */
static vlp_status find_row(loader_worker *w, int64_t row, int64_t pass, vlp_located *located,
                           vlp_caption_row *caption, vlp_rng *rng) {
    const vlp_loader *loader = w->loader;
    vlp_rows_kind kind = loader->options.rows;
    int64_t image = row;
    *caption = (vlp_caption_row){0};
    if (kind == VLP_ROWS_CAPTIONS) {
        VLP_TRY(vlp_reader_caption(w->reader, row, caption));
        image = caption->image_id;
    }
    if (kind == VLP_ROWS_QUESTIONS) {
        *rng = vlp_rng_at(loader->options.seed, VLP_RNG_CAPTION, (uint64_t)pass, (uint64_t)row);
        VLP_TRY(vlp_reader_question(w->reader, row, rng, caption));
        image = caption->image_id;
    }
    VLP_TRY(vlp_reader_locate(w->reader, image, located));
    if (kind == VLP_ROWS_QUESTIONS) return VLP_OK;
    *rng = vlp_rng_at(loader->options.seed, VLP_RNG_CAPTION, (uint64_t)pass, located->hash.low);
    return kind == VLP_ROWS_PAIRS ? vlp_reader_draw_caption(w->reader, image, rng, caption)
                                  : VLP_OK;
}

/* *ok = false: the image could not be read. */
static vlp_status fill_image(loader_worker *w, loader_slot *slot, int j, int64_t row, int64_t pass,
                             bool *ok) {
    vlp_loader *loader = w->loader;
    const vlp_transform *transform = loader->options.transform;
    bool captions =
        loader->options.rows == VLP_ROWS_CAPTIONS || loader->options.rows == VLP_ROWS_QUESTIONS;
    *ok = captions || !known_bad(loader, row);
    if (!*ok) return VLP_OK;
    vlp_located located;
    vlp_caption_row caption;
    vlp_rng rng;
    VLP_TRY(find_row(w, row, pass, &located, &caption, &rng));
    if (captions && known_bad(loader, located.id)) *ok = false;
    if (!*ok) return VLP_OK;
    if (caption.id) VLP_TRY(settle_sides(w, &caption, &rng, &transform));
    if (transform) {
        int64_t plane = (int64_t)transform->image_size * transform->image_size * 3;
        /* by content, not by row id: what lies between good rows must not change their crops; rows
         * of one image are told apart by their captions */
        uint64_t content = located.hash.low + (captions ? (uint64_t)caption.group * 2 + 1 : 0);
        vlp_rng crop = vlp_rng_at(loader->options.seed, VLP_RNG_AUGMENT, (uint64_t)pass, content);
        vlp_status status = fill_pixels(w, &located, transform, crop, slot->pixels + j * plane);
        if (status == VLP_ERR_MEMORY) return status;
        *ok = status == VLP_OK;
        if (!*ok) note_bad(loader, &located);
        if (!*ok) return VLP_OK;
    }
    slot->image_ids[j] = located.id;
    slot->groups[j] = located.group;
    if (caption.id) fill_tokens(loader, slot, j, &caption);
    return VLP_OK;
}

static void leave_empty(const vlp_loader *loader, loader_slot *slot, int j) {
    slot->image_ids[j] = -1;
    slot->groups[j] = -1;
    slot->caption_ids[j] = 0;
    slot->caption_groups[j] = 0;
    const vlp_loader_options *o = &loader->options;
    int64_t plane =
        o->transform ? (int64_t)o->transform->image_size * o->transform->image_size * 3 : 0;
    if (plane) memset(slot->pixels + j * plane, 0, (size_t)plane * sizeof(float));
    if (!o->tokenizer) return;
    memset(slot->token_ids + (int64_t)j * o->text_length, 0,
           (size_t)o->text_length * sizeof(int32_t));
    memset(slot->attention_mask + (int64_t)j * o->text_length, 0, (size_t)o->text_length);
}

vlp_status vlp_loader_fill(loader_worker *w, loader_slot *slot, int j, int64_t position) {
    vlp_loader *loader = w->loader;
    bool train = loader->options.train, ok = false;
    vlp_sample sample = train ? vlp_sampler_at(loader->sampler, position)
                              : (vlp_sample){.pool = 0, .row = position};
    const vlp_rows *pool = &loader->pools[sample.pool];
    slot->caption_ids[j] = slot->caption_groups[j] = 0;
    if (loader->options.rows == VLP_ROWS_TEXTS) return fill_text(w, slot, j, pool->ids[sample.row]);
    int64_t tries = !train ? 1 : pool->count < MAX_SUBSTITUTES ? pool->count : MAX_SUBSTITUTES;
    for (int64_t i = 0; i < tries && !ok; i++)
        VLP_TRY(
            fill_image(w, slot, j, pool->ids[(sample.row + i) % pool->count], sample.pass, &ok));
    if (ok) return VLP_OK;
    if (train)
        return VLP_FAIL(VLP_ERR_IO,
                        "%lld images in a row cannot be read any more; are the files"
                        " still there?",
                        (long long)tries);
    leave_empty(loader, slot, j);
    return VLP_OK;
}
