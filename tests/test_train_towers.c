/* Runs that start from a ViT and a BERT: what comes from where. */
#include "tests/fixture_corpus.h"

#include "core/checkpoint.h"

#include <math.h>

#define CASES VLP_TESTS_DIR "/data/parity/"
enum { PICTURES = 8, WORDS = 97 };

static void copy(corpus *c, const char *from, const char *to) {
    vlp_buf bytes = {0};
    if (vlp_file_read(from, 0, &bytes) != VLP_OK) fail_msg("%s", vlp_error());
    corpus_bytes(c, to, bytes.data, bytes.len);
    vlp_buf_free(&bytes);
}

/* The cases' folders, the BERT's with a vocabulary of its size. */
static void open_folders(corpus *c) {
    static const char *const special[] = {"[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"};
    vlp_buf words = {0};
    fixture_open(c, PICTURES);
    for (int i = 0; i < WORDS; i++) {
        if (i < (int)VLP_COUNT(special))
            vlp_buf_printf(&words, "%s\n", special[i]);
        else
            vlp_buf_printf(&words, "w%d\n", i);
    }
    corpus_bytes(c, "bert/vocab.txt", words.data, words.len);
    vlp_buf_free(&words);
    copy(c, CASES "bert-mlm/config.json", "bert/config.json");
    copy(c, CASES "bert-mlm/model.safetensors", "bert/model.safetensors");
    copy(c, CASES "vit-timm/config.json", "vit/config.json");
    copy(c, CASES "vit-timm/model.safetensors", "vit/model.safetensors");
}

static vlp_status start(const corpus *c, const char *recipe_name, const char *keys) {
    vlp_recipe recipe;
    fixture_run run;
    char image[700], text[700];
    vlp_trainer *trainer;
    vlp_train_summary summary;
    vlp_train_options *options = fixture_options(&run, c, "run");
    snprintf(image, sizeof image, "%s/vit", c->folder);
    snprintf(text, sizeof text, "%s/bert", c->folder);
    options->init_image = image;
    options->init_text = text;
    VLP_TRY(fixture_recipe(&recipe, recipe_name, keys));
    VLP_TRY(vlp_trainer_open(&trainer, &recipe, options));
    vlp_status status = vlp_trainer_run(trainer, &summary);
    vlp_trainer_free(trainer);
    return status;
}

/* theirs lies in ours from the element at `first` on. */
static void assert_part(const corpus *c, const char *ours, int64_t first, const char *folder,
                        const char *theirs) {
    char path[700];
    vlp_safetensors *model, *source;
    snprintf(path, sizeof path, "%s/run", c->folder);
    assert_int_equal(vlp_checkpoint_open(&model, path), VLP_OK);
    snprintf(path, sizeof path, "%s/%s", c->folder, folder);
    assert_int_equal(vlp_checkpoint_open(&source, path), VLP_OK);
    const vlp_safetensor *a = vlp_safetensors_find(model, ours);
    const vlp_safetensor *b = vlp_safetensors_find(source, theirs);
    if (!a || !b) fail_msg("%s or %s is missing", ours, theirs);
    assert_true(first + b->numel <= a->numel);
    for (int64_t i = 0; i < b->numel; i++)
        if (fabs(vlp_safetensor_value(a, first + i) - vlp_safetensor_value(b, i)) > 1e-6)
            fail_msg("%s[%lld] is not that of %s", ours, (long long)(first + i), theirs);
    vlp_safetensors_close(model);
    vlp_safetensors_close(source);
}

#define BERT_LAYER(n) "bert.encoder.layer." n "."

static void test_train_towers__a_bert_begins_text_and_fusion(void **state) {
    (void)state;
    corpus c;
    open_folders(&c);
    if (start(&c, "vlp", "steps=1 lr=1e-12 warmup=0 mim.weight=0 fusion_depth=1") != VLP_OK)
        fail_msg("%s", vlp_error());
    const int64_t width = 36, square = width * width;
    assert_part(&c, "vision.positions", 0, "vit", "pos_embed");
    assert_part(&c, "vision.blocks.2.mlp.fc1.weight", 0, "vit", "blocks.2.mlp.fc1.weight");
    assert_part(&c, "text.words", 0, "bert", "bert.embeddings.word_embeddings.weight");
    assert_part(&c, "text.types", 0, "bert", "bert.embeddings.token_type_embeddings.weight");
    assert_part(&c, "text.blocks.0.attn.qkv.weight", square, "bert",
                BERT_LAYER("0") "attention.self.key.weight");
    assert_part(&c, "fusion.blocks.0.attn.qkv.weight", 2 * square, "bert",
                BERT_LAYER("1") "attention.self.value.weight");
    assert_part(&c, "fusion.blocks.0.mlp.fc2.weight", 0, "bert",
                BERT_LAYER("1") "output.dense.weight");
    corpus_close(&c);
}

static void test_train_towers__what_does_not_fit_is_said(void **state) {
    (void)state;
    corpus c;
    open_folders(&c);
    assert_int_equal(start(&c, "vlp", "steps=1 mim.weight=0 fusion_depth=2"), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "2 layers, of which fusion_depth=2"));
    assert_int_equal(start(&c, "clip", "steps=1 towers=clip"), VLP_ERR_USAGE);
    assert_non_null(strstr(vlp_error(), "needs towers=vlp"));
    copy(&c, CASES "vit-hf-model/config.json", "vit/config.json");
    assert_int_equal(start(&c, "clip", "steps=1"), VLP_ERR_UNSUPPORTED);
    assert_non_null(strstr(vlp_error(), "it is no ViT as recipes have it"));
    corpus_close(&c);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_towers__a_bert_begins_text_and_fusion),
        cmocka_unit_test(test_train_towers__what_does_not_fit_is_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
