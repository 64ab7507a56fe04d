/* Numbers out of tensors: every stored type to the model's number or to int32. */
#include "core/safetensors.h"

#include <string.h>

static float from_bits(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* sign 1, exponent 5 (bias 15), fraction 10; exponent 0 = fraction x 2^-24, 31 = inf and NaN */
static float from_f16(uint16_t half) {
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31u;
    uint32_t fraction = half & 1023u;
    if (exponent == 0) {
        float magnitude = (float)fraction * 0x1p-24f;
        return sign ? -magnitude : magnitude;
    }
    return from_bits(sign | (exponent == 31 ? 255u : exponent + 112) << 23 | fraction << 13);
}

static float from_bf16(uint16_t upper) {
    return from_bits((uint32_t)upper << 16);
}

/* Element i of unaligned data as a number of the given type. */
#define LOAD(type, data, i)                                                                        \
    (__extension__({                                                                               \
        type value_;                                                                               \
        memcpy(&value_, (const uint8_t *)(data) + (size_t)(i) * sizeof value_, sizeof value_);     \
        value_;                                                                                    \
    }))

static vlp_status check_kind(const vlp_safetensor *t, bool want_float) {
    if (vlp_st_is_float(t->dtype) == want_float) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT, "%s: tensor \"%.96s\" is %s, where %s are expected", t->file,
                    t->name, vlp_st_dtype_name(t->dtype),
                    want_float ? "floating-point numbers" : "integers");
}

static vlp_status check(const vlp_safetensor *t, int64_t n, bool want_float) {
    VLP_TRY(check_kind(t, want_float));
    if (t->numel == n) return VLP_OK;
    return VLP_FAIL(VLP_ERR_FORMAT,
                    "%s: tensor \"%.96s\" has %lld elements, where %lld are "
                    "expected",
                    t->file, t->name, (long long)t->numel, (long long)n);
}

vlp_status vlp_safetensors_read_part(const vlp_safetensor *t, int64_t first, int64_t n,
                                     vlp_real *out) {
    VLP_TRY(check_kind(t, true));
    VLP_ASSERT(first >= 0 && n >= 0 && first <= t->numel - n, "elements beyond the tensor's");
    const uint8_t *data = t->data;
    if (n) data += (size_t)first * vlp_st_dtype_size(t->dtype);
    if (t->dtype == VLP_ST_F32 && sizeof(vlp_real) == sizeof(float)) {
        if (n) memcpy(out, data, (size_t)n * sizeof(float));
        return VLP_OK;
    }
    switch (t->dtype) {
    case VLP_ST_F16:
        for (int64_t i = 0; i < n; i++) out[i] = (vlp_real)from_f16(LOAD(uint16_t, data, i));
        break;
    case VLP_ST_BF16:
        for (int64_t i = 0; i < n; i++) out[i] = (vlp_real)from_bf16(LOAD(uint16_t, data, i));
        break;
    default:
        for (int64_t i = 0; i < n; i++) out[i] = (vlp_real)vlp_safetensor_value(t, first + i);
    }
    return VLP_OK;
}

vlp_status vlp_safetensors_read_real(const vlp_safetensor *t, vlp_real *out, int64_t n) {
    VLP_TRY(check(t, n, true));
    return vlp_safetensors_read_part(t, 0, n, out);
}

static int64_t integer_at(const vlp_safetensor *t, int64_t i) {
    switch (t->dtype) {
    case VLP_ST_I64:
        return LOAD(int64_t, t->data, i);
    case VLP_ST_I32:
        return LOAD(int32_t, t->data, i);
    case VLP_ST_I16:
        return LOAD(int16_t, t->data, i);
    case VLP_ST_I8:
        return LOAD(int8_t, t->data, i);
    default:
        return LOAD(uint8_t, t->data, i);
    }
}

double vlp_safetensor_value(const vlp_safetensor *t, int64_t i) {
    switch (t->dtype) {
    case VLP_ST_F64:
        return LOAD(double, t->data, i);
    case VLP_ST_F32:
        return (double)LOAD(float, t->data, i);
    case VLP_ST_F16:
        return (double)from_f16(LOAD(uint16_t, t->data, i));
    case VLP_ST_BF16:
        return (double)from_bf16(LOAD(uint16_t, t->data, i));
    default:
        return (double)integer_at(t, i);
    }
}

vlp_status vlp_safetensors_read_i32(const vlp_safetensor *t, int32_t *out, int64_t n) {
    VLP_TRY(check(t, n, false));
    for (int64_t i = 0; i < n; i++) {
        int64_t value = integer_at(t, i);
        if (value < INT32_MIN || value > INT32_MAX)
            return VLP_FAIL(VLP_ERR_LIMIT,
                            "%s: tensor \"%.96s\", element %lld: %lld is beyond 32 bits", t->file,
                            t->name, (long long)i, (long long)value);
        out[i] = (int32_t)value;
    }
    return VLP_OK;
}
