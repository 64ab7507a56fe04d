/* parity [--precision bf16] FOLDER...: runs reference cases; exit code 0 if all pass, 1 if one
 * fails, 2 if a folder is no case. In bf16 forward values and losses alone are compared, and the
 * largest relative difference is told; systems without a forward pass have none. */
#include "parity/runners.h"

#include <string.h>

/* The first row whose system is equal and whose mode begins the case's mode ("" = any). */
static const struct {
    const char *system, *mode;
    parity_runner *run;
} runners[] = {
    {"optimizer", "", parity_run_optimizer},
    {"BERT", "", parity_run_bert},
    {"BERT fine-tuning", "", parity_run_bert},
    {"BLIP image-text matching", "", parity_run_blip},
    {"BLIP captioning", "", parity_run_blip},
    {"BLIP captioning (HF names)", "", parity_run_blip},
    {"BLIP VQA", "", parity_run_blip},
    {"ALBEF VQA", "", parity_run_blip},
    {"CLIP (HF)", "", parity_run_clip},
    {"CLIP (openai names)", "", parity_run_clip},
    {"ALBEF pre-training", "", parity_run_albef},
    {"ALBEF retrieval fine-tuning", "", parity_run_albef},
    {"ALBEF retrieval evaluation", "", parity_run_albef_ranking},
    {"ALBEF visual entailment", "", parity_run_albef_entailment},
    {"BLIP pre-training", "", parity_run_albef},
    {"BLIP retrieval fine-tuning", "", parity_run_albef},
    {"BLIP retrieval evaluation", "", parity_run_albef_ranking},
    {"CLIP (open_clip names)", "", parity_run_clip},
    {"CLIP (open_clip CustomTextCLIP names)", "", parity_run_clip},
    {"LiT (locked image tower)", "", parity_run_clip},
    {"distributed InfoNCE", "", parity_run_ranks},
    {"SigLIP sigmoid loss", "", parity_run_ranks},
    {"SimCLR NT-Xent", "", parity_run_simclr},
    {"zero-shot classification and retrieval metrics", "", parity_run_zeroshot},
    {"DeiT (HF)", "", parity_run_vit},
    {"CoCa (open_clip names)", "", parity_run_clip},
    {"image preprocessing", "", parity_run_image},
    {"image augmentation", "", parity_run_image},
    {"image robustness", "", parity_run_image},
    {"BERT WordPiece", "", parity_run_tokenizer},
    {"CLIP BPE", "", parity_run_tokenizer},
    {"GPT-2 byte-level BPE", "", parity_run_tokenizer},
    {"RoBERTa byte-level BPE", "", parity_run_tokenizer},
    {"SentencePiece", "", parity_run_tokenizer},
    {"LLaMA SentencePiece BPE (real 32000 vocabulary)", "", parity_run_tokenizer},
    {"tokenizer.json (HF fast tokenizer format)", "", parity_run_tokenizer},
    {"ViT (timm names)", "", parity_run_vit},
    {"ViT (HF)", "", parity_run_vit},
    {"SimMIM (HF ViT)", "", parity_run_vit},
    {"MAE (official)", "", parity_run_mae},
    {"MAE (HF)", "", parity_run_mae},
};

static parity_runner *find_runner(const parity_case *c) {
    for (size_t i = 0; i < VLP_COUNT(runners); i++)
        if (strcmp(c->system, runners[i].system) == 0 &&
            strncmp(c->mode, runners[i].mode, strlen(runners[i].mode)) == 0)
            return runners[i].run;
    return NULL;
}

static vlp_status run_case(const parity_case *c, parity_report *report) {
    parity_runner *run = find_runner(c);
    if (!run)
        return VLP_FAIL(VLP_ERR_UNSUPPORTED, "no runner for system \"%s\", mode \"%s\"", c->system,
                        c->mode);
    return run(c, report);
}

static int run_folder(const char *folder, vlp_dtype precision) {
    parity_case c;
    parity_report *report = NULL;
    vlp_status status = parity_case_open(&c, folder);
    c.precision = precision;
    if (status == VLP_OK) status = parity_report_new(&report, &c, stdout);
    int code = 2;
    if (status != VLP_OK) {
        fprintf(stderr, "parity: %s\n", vlp_error());
    } else {
        status = run_case(&c, report);
        code = parity_verdict(report, status == VLP_OK ? NULL : vlp_error()) ? 0 : 1;
    }
    parity_report_free(report);
    parity_case_close(&c);
    return code;
}

int main(int argc, char **argv) {
    vlp_dtype precision = VLP_REAL;
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--precision") == 0) {
        precision = strcmp(argv[2], "bf16") == 0 ? VLP_BF16 : VLP_REAL;
        first = precision == VLP_BF16 || strcmp(argv[2], "fp32") == 0 ? 3 : argc;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: parity [--precision fp32|bf16] FOLDER...\n");
        return 2;
    }
    int worst = 0;
    for (int i = first; i < argc; i++) {
        int code = run_folder(argv[i], precision);
        if (code > worst) worst = code;
    }
    return worst;
}
