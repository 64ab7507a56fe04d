#include "train/recipe.h"
#include "train/recipe_towers.h"

static const char *const pools[] = {"first", "mean", "map", NULL};
static const char *const schedules[] = {"cosine", "linear", "constant", NULL};
static const char *const regressions[] = {"l1", "mse", NULL};
static const char *const mim_kinds[] = {"simmim", "mae", NULL}; /* as vlp_mim_kind */
static const char *const caption_ways[] = {"one", "all", "questions", NULL};
static const char *const side_ways[] = {"keep", "mirror", "ignore", NULL}; /* as vlp_sides */
static const char *const keep_ways[] = {"auto", "on", "off", NULL}; /* as in trainer_guard.c */
static const char *const precisions[] = {"auto", "fp32", "bf16", NULL};

#define AT(member) offsetof(vlp_recipe, member)
#define INT(key, member, least, most, fallback, help)                                              \
    { (key), VLP_OPTION_INT, AT(member), (least), (most), (fallback), (help), NULL }
#define REAL(key, member, least, most, fallback, help)                                             \
    { (key), VLP_OPTION_DOUBLE, AT(member), (least), (most), (fallback), (help), NULL }
#define BOOL(key, member, fallback, help)                                                          \
    { (key), VLP_OPTION_BOOL, AT(member), 0, 0, (fallback), (help), NULL }
#define TEXT(key, member, fallback, help)                                                          \
    { (key), VLP_OPTION_TEXT, AT(member), 0, 0, (fallback), (help), NULL }
#define CHOICE(key, member, fallback, choices, help)                                               \
    { (key), VLP_OPTION_CHOICE, AT(member), 0, 0, (fallback), (help), (choices) }

static const vlp_option rows[] = {
    TEXT("name", name, "", "the recipe this run came from"),
    TEXT("size", size, "", "nano, tiny, small or base"),

    INT("image_size", image_size, 1, 4096, "224", "pixels a side"),
    INT("patch", patch, 1, 512, "16", "pixels a patch side; divides image_size"),
    INT("width", width, 1, 16384, "384", "of the image tower; heads divides it"),
    INT("vision_depth", vision_depth, 1, VLP_MAX_DEPTH, "12", "layers of the image tower"),
    INT("heads", heads, 1, 256, "6", "attention heads of the image tower"),
    INT("text_width", text_width, 0, 16384, "0", "of text tower and fusion; 0 = width"),
    INT("text_heads", text_heads, 0, 256, "0", "of text tower and fusion; 0 = heads"),
    INT("text_depth", text_depth, 1, VLP_MAX_DEPTH, "6", "layers of the text tower"),
    INT("fusion_depth", fusion_depth, 0, VLP_MAX_DEPTH, "6", "cross-attention layers; 0 = none"),
    BOOL("fusion_in_text", fusion_in_text, "false",
         "the text tower's own layers look at the picture, instead of a fusion stack (BLIP)"),
    INT("embedding", embedding, 1, 65536, "256", "width of the shared space"),
    INT("text_length", text_length, 3, 4096, "32", "tokens a caption, [CLS] and [SEP] included"),
    CHOICE("towers", towers, "vlp", vlp_tower_names,
           "vlp: a ViT and a BERT; or those of clip, openai (quick GELU) or siglip"),
    CHOICE("pool", pool, "first", pools, "how an image is read: first, mean or map"),
    REAL("mlp_ratio", mlp_ratio, 0.25, 16, "4", "hidden width of the MLPs over width"),
    REAL("text_mlp_ratio", text_mlp_ratio, 0, 16, "0", "of text tower and fusion; 0 = mlp_ratio"),
    REAL("dropout", dropout, 0, 0.9, "0", "on embeddings, attention outputs and MLPs"),
    REAL("drop_path", drop_path, 0, 0.9, "0", "stochastic depth of the image tower's last layer"),
    INT("text_types", text_types, 0, 16, "0", "segment embeddings of the text tower; BERT has 2"),
    INT("text_positions", text_positions, 0, 1000000, "0", "of the text tower; 0 = text_length"),
    BOOL("projection_bias", projection_bias, "false", "biases of both projections"),
    BOOL("plain_temperature", plain_temperature, "false",
         "learn the temperature itself, not its logarithm"),
    REAL("temperature", temperature, 1e-4, 10, "0.07", "initial value, learnt afterwards"),
    REAL("temperature_least", temperature_least, 1e-4, 10, "0.01", "lower clamp"),
    REAL("temperature_most", temperature_most, 0, 10, "0", "upper clamp if it is plain; 0 = none"),

    REAL("itc.weight", objectives.itc_weight, 0, 1000, "1", "image-text contrast; 0 = off"),
    REAL("itc.label_smoothing", objectives.itc_label_smoothing, 0, 0.9, "0", "of its targets"),
    REAL("itc.alpha", objectives.itc_alpha, 0, 1, "0.4", "the momentum twin's share of targets"),
    REAL("sigmoid.weight", objectives.sigmoid_weight, 0, 1000, "0",
         "contrast of each pair by itself (SigLIP); 0 = off"),
    REAL("sigmoid.bias", objectives.sigmoid_bias, -100, 100, "-10",
         "initial bias of its logits, learnt afterwards"),
    REAL("itm.weight", objectives.itm_weight, 0, 1000, "1", "image-text matching; 0 = off"),
    REAL("itm.share", objectives.itm_share, 0.001, 1, "1", "share of the batch it works on"),
    REAL("mlm.weight", objectives.mlm_weight, 0, 1000, "1", "masked language modelling; 0 = off"),
    REAL("mlm.probability", objectives.mlm_probability, 0.001, 1, "0.15", "share of tokens"),
    REAL("mlm.mask", objectives.mlm_mask, 0, 1, "0.8", "of those: replaced by [MASK]"),
    REAL("mlm.random", objectives.mlm_random, 0, 1, "0.1", "of those: replaced by any token"),
    REAL("mlm.share", objectives.mlm_share, 0.001, 1, "1", "share of the batch it works on"),
    REAL("mlm.alpha", objectives.mlm_alpha, 0, 1, "0.4", "the momentum twin's share of targets"),
    BOOL("mlm.whole_words", objectives.mlm_whole_words, "false", "mask all pieces of a word"),
    REAL("lm.weight", objectives.lm_weight, 0, 1000, "0", "captions written word by word; 0 = off"),
    REAL("lm.label_smoothing", objectives.lm_label_smoothing, 0, 0.9, "0.1", "of its targets"),
    BOOL("lm.answers", objectives.lm_answers, "false",
         "the question is given, the answer is written; with data.captions=questions"),
    REAL("lm.share", objectives.lm_share, 0.001, 1, "1", "share of the batch it works on"),
    REAL("mim.weight", objectives.mim_weight, 0, 1000, "1", "masked image modelling; 0 = off"),
    REAL("mim.ratio", objectives.mim_ratio, 0, 1, "0.6", "share of patches masked"),
    REAL("mim.share", objectives.mim_share, 0.001, 1, "1", "share of the batch it works on"),
    CHOICE("mim.loss", objectives.mim_loss, "l1", regressions, "l1 or mse on pixels"),
    CHOICE("mim.kind", objectives.mim_kind, "simmim", mim_kinds,
           "simmim: a mask token; mae: the tower sees the other patches only"),
    INT("mim.decoder_width", objectives.mim_decoder_width, 0, 16384, "0",
        "of mae's decoder; 0 = half of width"),
    INT("mim.decoder_depth", objectives.mim_decoder_depth, 0, VLP_MAX_DEPTH, "2",
        "layers of mae's decoder"),
    BOOL("mim.standardised", objectives.mim_standardised, "false",
         "mae: each patch's pixels less their mean, over their deviation"),

    REAL("momentum.decay", objectives.momentum_decay, 0, 0.999999, "0",
         "of a momentum twin; 0 = no twin"),
    INT("momentum.queue", objectives.momentum_queue, 0, 10000000, "0",
        "earlier pairs that its features are kept of"),
    REAL("momentum.ramp", momentum_ramp, 0, 1e6, "1", "passes until alpha is whole"),

    REAL("lr", lr, 0, 10, "5e-4", "peak learning rate"),
    REAL("lr_least", lr_least, 0, 10, "0", "at the end of the schedule"),
    CHOICE("schedule", schedule, "cosine", schedules, "after warm-up: cosine, linear, constant"),
    REAL("warmup", warmup, 0, 1e9, "0.05", "below 1: share of the run; else steps"),
    REAL("weight_decay", weight_decay, 0, 10, "0.05", "on matrices of linear layers only"),
    REAL("beta1", beta1, 0, 0.99999, "0.9", "AdamW"),
    REAL("beta2", beta2, 0, 0.99999, "0.98", "AdamW"),
    REAL("eps", eps, 1e-16, 1, "1e-8", "AdamW"),
    REAL("clip_grad", clip_grad, 0, 1e9, "1", "global gradient norm; 0 = no clipping"),
    REAL("ema", ema, 0, 0.999999, "0", "decay of the averaged weights that are saved; 0 = off"),
    INT("batch", batch, 1, 1000000, "64", "pairs a micro-batch"),
    INT("accumulate", accumulate, 1, 1000000, "1", "micro-batches a step"),
    INT("epochs", epochs, 0, 1000000000, "0", "passes over the training split; 0 = by steps"),
    INT("steps", steps, 0, 1e15, "0", "optimizer steps; 0 = by epochs or minutes"),
    REAL("max_minutes", max_minutes, 0, 1e9, "0", "end after so long, schedule included; 0 = any"),

    TEXT("data.train", train_split, "train", "split to train on"),
    TEXT("data.val", val_split, "val", "split evaluated during training"),
    TEXT("data.test", test_split, "test", "split evaluated at the end"),
    TEXT("data.eval_source", eval_source, "", "source that both are evaluated on; empty = all"),
    TEXT("data.mixture", mixture, "", "source=weight,...: how often each source is drawn"),
    CHOICE("data.captions", captions, "one", caption_ways,
           "a picture a row, all its captions, or its questions with an answer"),
    BOOL("data.by_source", by_source, "false", "every batch from one source of the mixture"),
    REAL("augment.crop", crop_least, 0.01, 1, "0.5", "least area of random crops"),
    REAL("augment.flip", flip, 0, 1, "0", "probability of mirroring; captions may say left"),
    CHOICE("augment.sides", sides, "keep", side_ways,
           "captions with left/right: keep, mirror, ignore"),
    REAL("augment.jitter", jitter, 0, 1, "0", "brightness, contrast, saturation"),
    REAL("augment.randaugment", randaugment, 0, 10, "0",
         "magnitude of two operations; ALBEF: 7, BLIP: 5"),
    BOOL("exif_rotate", exif_rotate, "true", "turn pictures upright"),
    INT("loader.threads", loader_threads, 0, 1024, "0", "0 = as many as processors"),
    INT("loader.block_rows", block_rows, 0, 1000000000, "0",
        "neighbours drawn together; 0 = any order"),
    INT("loader.cache_mb", cache_mb, 0, 1000000, "512", "memory for decoded pictures"),
    TEXT("loader.pixel_file", pixel_file, "", "file of decoded pictures, made once; empty = none"),

    INT("seed", seed, 0, 1e15, "0", "of everything random"),
    INT("eval_every", eval_every, 0, 1e15, "0", "steps between evaluations; 0 = ten a run"),
    INT("eval_rows", eval_rows, 1, 1e9, "1000", "pictures of the validation split used for them"),
    CHOICE("keep_best", keep_best, "auto", keep_ways,
           "save the model of the best evaluation on data.val; auto: with --init"),
    REAL("start_share", start_share, 0, 1, "0",
         "of the weights that --init gave in those that are saved (WiSE-FT); 0 = none"),
    REAL("checkpoint_minutes", checkpoint_minutes, 0, 1e6, "5",
         "between checkpoints; 0 = at the end"),
    INT("checkpoint_steps", checkpoint_steps, 0, 1e15, "0", "between checkpoints; 0 = by minutes"),
    CHOICE("precision", precision, "auto", precisions,
           "of activations and products; auto: bf16 where the processor multiplies it"),
    BOOL("itc.whole_step", whole_step_contrast, "false",
         "with accumulate: contrast over all micro-batches of a step, in a second pass"),
    BOOL("recompute", recompute, "false", "keep less memory by computing blocks a second time"),
};

const vlp_options vlp_recipe_options = {rows, VLP_COUNT(rows)};
