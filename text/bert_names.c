#include "text/bert_names.h"

/* The first checkpoints call a norm's weight and bias gamma and beta. */
#define NORM(t, o)                                                                                 \
    VLP_NAME_LAYER(t, o), {.theirs = t ".gamma", .ours = o ".weight"}, {                           \
        .theirs = t ".beta", .ours = o ".bias"                                                     \
    }

static const vlp_name_row embeddings[] = {
    {.theirs = "embeddings.position_ids"},
    {.theirs = "embeddings.word_embeddings.weight", .ours = "words"},
    {.theirs = "embeddings.position_embeddings.weight", .ours = "positions"},
    {.theirs = "embeddings.token_type_embeddings.weight", .ours = "types"},
    NORM("embeddings.LayerNorm", "norm"),
};

/* What a decoder that shares its encoder's other layers has of its own. */
static const vlp_name_row attention[] = {
    VLP_NAME_PART("encoder.layer.{}.attention.self.query", "blocks.{}.attn.qkv", 0, 3),
    VLP_NAME_PART("encoder.layer.{}.attention.self.key", "blocks.{}.attn.qkv", 1, 3),
    VLP_NAME_PART("encoder.layer.{}.attention.self.value", "blocks.{}.attn.qkv", 2, 3),
    VLP_NAME_LAYER("encoder.layer.{}.attention.output.dense", "blocks.{}.attn.proj"),
    NORM("encoder.layer.{}.attention.output.LayerNorm", "blocks.{}.norm1"),
};

static const vlp_name_row others[] = {
    VLP_NAME_LAYER("encoder.layer.{}.crossattention.self.query", "blocks.{}.cross.q"),
    VLP_NAME_PART("encoder.layer.{}.crossattention.self.key", "blocks.{}.cross.kv", 0, 2),
    VLP_NAME_PART("encoder.layer.{}.crossattention.self.value", "blocks.{}.cross.kv", 1, 2),
    VLP_NAME_LAYER("encoder.layer.{}.crossattention.output.dense", "blocks.{}.cross.proj"),
    NORM("encoder.layer.{}.crossattention.output.LayerNorm", "blocks.{}.norm_cross"),
    VLP_NAME_LAYER("encoder.layer.{}.intermediate.dense", "blocks.{}.mlp.fc1"),
    VLP_NAME_LAYER("encoder.layer.{}.output.dense", "blocks.{}.mlp.fc2"),
    NORM("encoder.layer.{}.output.LayerNorm", "blocks.{}.norm2"),
    VLP_NAME_LAYER("pooler.dense", "pooler"),
};

/* What stands beside the encoder, without its prefix. The decoder is tied to the words. */
static const vlp_name_row heads[] = {
    VLP_NAME_LAYER("cls.predictions.transform.dense", "mlm.dense"),
    NORM("cls.predictions.transform.LayerNorm", "mlm.norm"),
    {.theirs = "cls.predictions.bias", .ours = "mlm.bias"},
    {.theirs = "cls.predictions.decoder.bias", .ours = "mlm.bias"},
    {.theirs = "cls.predictions.decoder.weight", .ours = "words"},
    VLP_NAME_LAYER("cls.seq_relationship", "nsp"),
    VLP_NAME_LAYER("classifier", "classifier"),
    VLP_NAME_LAYER("qa_outputs", "answer"),
};

void vlp_bert_names_layers(vlp_name_map *map, const char *theirs, const char *ours, int64_t first,
                           int64_t end) {
    vlp_name_map_add_layers(map, embeddings, VLP_COUNT(embeddings), theirs, ours, first, end);
    vlp_name_map_add_layers(map, attention, VLP_COUNT(attention), theirs, ours, first, end);
    vlp_name_map_add_layers(map, others, VLP_COUNT(others), theirs, ours, first, end);
}

/* Of a decoder that writes: its transform, and last its words. */
static const vlp_name_row lm_head[] = {
    VLP_NAME_LAYER("cls.predictions.transform.dense", "dense"),
    NORM("cls.predictions.transform.LayerNorm", "norm"),
    {.theirs = "cls.predictions.bias", .ours = "bias"},
    {.theirs = "cls.predictions.decoder.bias", .ours = "bias"},
    {.theirs = "cls.predictions.decoder.weight", .ours = "words"},
};

void vlp_bert_names_attention(vlp_name_map *map, const char *theirs, const char *ours) {
    vlp_name_map_add(map, attention, VLP_COUNT(attention), theirs, ours);
}

void vlp_bert_names_others(vlp_name_map *map, const char *theirs, const char *ours) {
    vlp_name_map_add(map, embeddings, VLP_COUNT(embeddings), theirs, ours);
    vlp_name_map_add(map, others, VLP_COUNT(others), theirs, ours);
}

void vlp_bert_names_writer(vlp_name_map *map, const char *theirs, const char *ours,
                           const char *words) {
    size_t last = VLP_COUNT(lm_head) - 1;
    vlp_name_map_add(map, lm_head, last, theirs, ours);
    vlp_name_map_add(map, lm_head + last, 1, theirs, words);
}

static const char *const prefixes[] = {"bert.",         "",       "text_encoder.bert.",
                                       "text_encoder.", "model.", NULL};

static vlp_status find_prefix(const vlp_safetensors *file, const char **prefix) {
    *prefix = vlp_name_prefix(file, prefixes, "embeddings.word_embeddings.weight");
    if (*prefix) return VLP_OK;
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: no \"embeddings.word_embeddings.weight\": not a BERT whose names are "
                    "known",
                    vlp_safetensors_count(file) ? vlp_safetensors_at(file, 0)->file : "checkpoint");
}

vlp_status vlp_bert_names_split(vlp_name_map *map, const vlp_safetensors *file, const char *first,
                                const char *rest, int64_t middle) {
    const char *prefix;
    VLP_TRY(find_prefix(file, &prefix));
    vlp_bert_names_layers(map, prefix, first, 0, middle);
    vlp_bert_names_layers(map, prefix, rest, middle, INT64_MAX);
    return VLP_OK;
}

vlp_status vlp_bert_names(vlp_name_map *map, const vlp_safetensors *file, const char *ours) {
    const char *prefix;
    VLP_TRY(find_prefix(file, &prefix));
    vlp_bert_names_layers(map, prefix, ours, 0, INT64_MAX);
    vlp_name_map_add(map, heads, VLP_COUNT(heads), "", ours);
    return VLP_OK;
}
