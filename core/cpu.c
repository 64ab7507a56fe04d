#include "core/cpu.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__)
#include <sys/auxv.h>
#endif

static vlp_cpu_info info;
static pthread_once_t info_once = PTHREAD_ONCE_INIT;

#if defined(__x86_64__)

static bool bit(unsigned word, int index) {
    return (word >> index & 1u) != 0;
}

/* XCR0: which register files the operating system saves at a context switch. */
static unsigned saved_registers(void) {
    unsigned low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return low;
}

static void detect_model(void) {
    unsigned words[12];
    if ((unsigned)__get_cpuid_max(0x80000000u, NULL) < 0x80000004u) return;
    for (unsigned i = 0; i < 3; i++) {
        unsigned *w = words + 4 * i;
        __get_cpuid(0x80000002u + i, w, w + 1, w + 2, w + 3);
    }
    char text[sizeof words + 1] = {0};
    memcpy(text, words, sizeof words);
    const char *start = text + strspn(text, " ");
    snprintf(info.model, sizeof info.model, "%s", *start ? start : "unknown");
}

static void detect(void) {
    enum { AVX_STATE = 0x6, AVX512_STATE = 0xe6, AMX_STATE = 0x60000 };
    unsigned a, b, c, d;
    detect_model();
    if (!__get_cpuid(1, &a, &b, &c, &d)) return;
    info.sse2 = bit(d, 26);
    unsigned saved = bit(c, 27) ? saved_registers() : 0;
    bool fma = bit(c, 12) && bit(c, 28);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return;
    unsigned subleaves = a;
    bool avx_saved = (saved & AVX_STATE) == AVX_STATE;
    bool amx_saved = (saved & AMX_STATE) == AMX_STATE;
    info.avx2_fma = fma && bit(b, 5) && avx_saved;
    info.avx512 = info.avx2_fma && (saved & AVX512_STATE) == AVX512_STATE && bit(b, 16) &&
                  bit(b, 17) && bit(b, 30) && bit(b, 31);
    info.amx_bf16 = amx_saved && bit(d, 22);
    info.amx_tile = amx_saved && bit(d, 24);
    info.amx_int8 = amx_saved && bit(d, 25);
    if (subleaves >= 1 && __get_cpuid_count(7, 1, &a, &b, &c, &d))
        info.avx512_bf16 = info.avx512 && bit(a, 5);
}

#else

static void detect(void) {
#if defined(__aarch64__)
    enum { HWCAP_SVE_BIT = 22, HWCAP2_BF16_BIT = 14 };
    info.neon = true;
    info.sve = (getauxval(AT_HWCAP) >> HWCAP_SVE_BIT & 1) != 0;
    info.bf16 = (getauxval(AT_HWCAP2) >> HWCAP2_BF16_BIT & 1) != 0;
#endif
    FILE *file = fopen("/proc/cpuinfo", "re");
    if (!file) return;
    char line[256];
    while (fgets(line, sizeof line, file)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0) continue;
        snprintf(info.model, sizeof info.model, "%.*s", (int)strcspn(colon + 1, "\n"), colon + 1);
        break;
    }
    fclose(file);
}

#endif

static int64_t cache_bytes(int name) {
    long bytes = sysconf(name);
    return bytes > 0 ? bytes : 0;
}

static void detect_once(void) {
    snprintf(info.model, sizeof info.model, "unknown");
    detect();
    info.l1d_bytes = cache_bytes(_SC_LEVEL1_DCACHE_SIZE);
    info.l2_bytes = cache_bytes(_SC_LEVEL2_CACHE_SIZE);
    info.l3_bytes = cache_bytes(_SC_LEVEL3_CACHE_SIZE);
}

const vlp_cpu_info *vlp_cpu(void) {
    pthread_once(&info_once, detect_once);
    return &info;
}

const char *vlp_cpu_features(char *text, size_t size) {
    const vlp_cpu_info *cpu = vlp_cpu();
    const struct {
        bool has;
        const char *name;
    } features[] = {
        {cpu->sse2, "sse2"},         {cpu->avx2_fma, "avx2+fma"},
        {cpu->avx512, "avx512"},     {cpu->avx512_bf16, "avx512_bf16"},
        {cpu->amx_tile, "amx_tile"}, {cpu->amx_bf16, "amx_bf16"},
        {cpu->amx_int8, "amx_int8"}, {cpu->neon, "neon"},
        {cpu->sve, "sve"},           {cpu->bf16, "bf16"},
    };
    size_t used = 0;
    if (size > 0) text[0] = '\0';
    for (size_t i = 0; i < VLP_COUNT(features); i++) {
        if (!features[i].has || used >= size) continue;
        int n = snprintf(text + used, size - used, "%s%s", used ? " " : "", features[i].name);
        used += n > 0 ? (size_t)n : 0;
    }
    return text;
}

static const char *const isa_names[VLP_ISA_COUNT] = {"plain", "avx2", "avx512"};

const char *vlp_isa_name(vlp_isa isa) {
    return (unsigned)isa < VLP_ISA_COUNT ? isa_names[isa] : "unknown";
}

vlp_isa vlp_isa_best(void) {
    if (vlp_cpu()->avx512) return VLP_ISA_AVX512;
    return vlp_cpu()->avx2_fma ? VLP_ISA_AVX2 : VLP_ISA_PLAIN;
}

/* VLP_ISA_COUNT for an unknown word */
static vlp_isa isa_wanted(void) {
    const char *word = getenv("VLP_ISA");
    if (!word || !*word) return vlp_isa_best();
    int isa = 0;
    while (isa < VLP_ISA_COUNT && strcmp(word, isa_names[isa]) != 0) isa++;
    return (vlp_isa)isa;
}

vlp_isa vlp_isa_chosen(void) {
    vlp_isa best = vlp_isa_best(), wanted = isa_wanted();
    return wanted < best ? wanted : best;
}

vlp_status vlp_isa_check(void) {
    if (isa_wanted() != VLP_ISA_COUNT) return VLP_OK;
    return VLP_FAIL(VLP_ERR_USAGE, "VLP_ISA=\"%s\" is unknown; use plain, avx2 or avx512",
                    getenv("VLP_ISA"));
}
