/* The machine of Python's pickletools, without the parts that run code. */
#include "core/pickle.h"

#include "core/memory.h"

#include <stdio.h>
#include <string.h>

enum { MOST_VALUES = 1 << 21, CHUNK = 256, GLOBAL_BYTES = 256 };

typedef struct chunk {
    struct chunk *next;
    vlp_pickle_value values[CHUNK];
} chunk;

struct vlp_pickle {
    chunk *chunks; /* newest first */
    size_t used;   /* of the newest */
    size_t count;
    vlp_pickle_value *top;
    char **names; /* of globals */
    size_t name_count;
};

typedef struct {
    vlp_pickle *pickle;
    const uint8_t *data, *at, *end;
    vlp_pickle_allowed *allowed;
    const char *where;
    vlp_pickle_value **stack;
    size_t depth, room;
    size_t *marks;
    size_t mark_count, mark_room;
    vlp_pickle_value **memo;
    size_t memo_room, memo_next;
    bool done;
} machine;

static vlp_status damaged(const machine *m, const char *what) {
    VLP_FAIL(VLP_ERR_FORMAT, "%s: its pickle is damaged at byte %zu: %s", m->where,
             (size_t)(m->at - m->data), what);
    return VLP_ERR_FORMAT; /* a constant, so that compilers know what a success has set */
}

static vlp_status grow(void **block, size_t *room, size_t wanted, size_t size) {
    if (wanted <= *room) return VLP_OK;
    size_t more = *room < 16 ? 16 : *room;
    while (more < wanted) more *= 2;
    void *larger = vlp_realloc(*block, more * size);
    if (!larger) return VLP_ERR_MEMORY;
    memset((char *)larger + *room * size, 0, (more - *room) * size);
    *block = larger;
    *room = more;
    return VLP_OK;
}

static vlp_status new_value(machine *m, vlp_pickle_kind kind, vlp_pickle_value **out) {
    vlp_pickle *p = m->pickle;
    if (p->count >= MOST_VALUES)
        return VLP_FAIL(VLP_ERR_LIMIT, "%s: more than %d values in its pickle", m->where,
                        MOST_VALUES);
    if (!p->chunks || p->used == CHUNK) {
        chunk *fresh = vlp_alloc_zero(1, sizeof *fresh);
        if (!fresh) return VLP_ERR_MEMORY;
        fresh->next = p->chunks;
        p->chunks = fresh;
        p->used = 0;
    }
    *out = &p->chunks->values[p->used++];
    (*out)->kind = kind;
    p->count++;
    return VLP_OK;
}

static vlp_status push(machine *m, vlp_pickle_value *value) {
    VLP_TRY(grow((void **)&m->stack, &m->room, m->depth + 1, sizeof *m->stack));
    m->stack[m->depth++] = value;
    return VLP_OK;
}

static vlp_status push_new(machine *m, vlp_pickle_kind kind, vlp_pickle_value **out) {
    VLP_TRY(new_value(m, kind, out));
    return push(m, *out);
}

static size_t floor_of(const machine *m) {
    return m->mark_count ? m->marks[m->mark_count - 1] : 0;
}

static vlp_status pop(machine *m, vlp_pickle_value **out) {
    *out = NULL;
    if (m->depth <= floor_of(m)) return damaged(m, "the stack is empty");
    *out = m->stack[--m->depth];
    return VLP_OK;
}

/* The value that stays below. */
static vlp_status peek(const machine *m, vlp_pickle_value **out) {
    *out = NULL;
    if (m->depth <= floor_of(m)) return damaged(m, "the stack is empty");
    *out = m->stack[m->depth - 1];
    return VLP_OK;
}

static vlp_status append(vlp_pickle_value *to, vlp_pickle_value *const *items, size_t n) {
    VLP_TRY(grow((void **)&to->items, &to->capacity, to->count + n, sizeof *to->items));
    if (n) memcpy(to->items + to->count, items, n * sizeof *items);
    to->count += n;
    return VLP_OK;
}

static vlp_status mark(machine *m) {
    VLP_TRY(grow((void **)&m->marks, &m->mark_room, m->mark_count + 1, sizeof *m->marks));
    m->marks[m->mark_count++] = m->depth;
    return VLP_OK;
}

/* Takes all values above the last mark: they stay readable at *items until the next push. */
static vlp_status take_marked(machine *m, vlp_pickle_value ***items, size_t *n) {
    if (m->mark_count == 0) return damaged(m, "no mark");
    size_t first = m->marks[--m->mark_count];
    *items = m->stack ? m->stack + first : NULL;
    *n = m->depth - first;
    m->depth = first;
    return VLP_OK;
}

static vlp_status need(const machine *m, size_t bytes) {
    return (size_t)(m->end - m->at) >= bytes ? VLP_OK : damaged(m, "it ends too early");
}

/* An unsigned little-endian number. */
static vlp_status number(machine *m, int bytes, uint64_t *out) {
    VLP_TRY(need(m, (size_t)bytes));
    *out = 0;
    for (int i = bytes - 1; i >= 0; i--) *out = *out << 8 | m->at[i];
    m->at += bytes;
    return VLP_OK;
}

static vlp_status take_line(machine *m, const char **text, size_t *bytes) {
    const uint8_t *end = memchr(m->at, '\n', (size_t)(m->end - m->at));
    if (!end) return damaged(m, "a line has no end");
    *text = (const char *)m->at;
    *bytes = (size_t)(end - m->at);
    m->at = end + 1;
    return VLP_OK;
}

static vlp_status push_int(machine *m, vlp_pickle_kind kind, int64_t integer) {
    vlp_pickle_value *value = NULL;
    VLP_TRY(push_new(m, kind, &value));
    value->integer = integer;
    return VLP_OK;
}

static vlp_status push_text(machine *m, int length_bytes) {
    uint64_t n;
    vlp_pickle_value *value = NULL;
    VLP_TRY(number(m, length_bytes, &n));
    if (n > (size_t)(m->end - m->at)) return damaged(m, "a text reaches beyond its end");
    VLP_TRY(push_new(m, VLP_PICKLE_TEXT, &value));
    value->text = (const char *)m->at;
    value->bytes = (size_t)n;
    m->at += n;
    return VLP_OK;
}

static vlp_status push_float(machine *m) {
    uint64_t bits = 0;
    vlp_pickle_value *value = NULL;
    VLP_TRY(need(m, 8));
    for (int i = 0; i < 8; i++) bits = bits << 8 | *m->at++; /* big endian */
    VLP_TRY(push_new(m, VLP_PICKLE_FLOAT, &value));
    memcpy(&value->real, &bits, sizeof value->real);
    return VLP_OK;
}

/* Two's complement of any length. Longer ones than 64 bits are saturated: no size is so large. */
static vlp_status push_long(machine *m, int length_bytes) {
    uint64_t n;
    VLP_TRY(number(m, length_bytes, &n));
    VLP_TRY(need(m, n));
    bool negative = n > 0 && m->at[n - 1] & 0x80;
    uint64_t value = negative ? UINT64_MAX : 0;
    for (uint64_t i = n > 8 ? 8 : n; i-- > 0;) value = value << 8 | m->at[i];
    m->at += n;
    int64_t large = negative ? INT64_MIN : INT64_MAX;
    return push_int(m, VLP_PICKLE_INT, n > 8 ? large : (int64_t)value);
}

static vlp_status push_sequence(machine *m, vlp_pickle_kind kind, vlp_pickle_value *const *items,
                                size_t n) {
    vlp_pickle_value *value = NULL;
    VLP_TRY(new_value(m, kind, &value));
    VLP_TRY(append(value, items, n));
    return push(m, value);
}

static vlp_status push_marked(machine *m, int kind) {
    vlp_pickle_value **items;
    size_t n;
    VLP_TRY(take_marked(m, &items, &n));
    if (kind == VLP_PICKLE_DICT && n % 2) return damaged(m, "a key has no value");
    return push_sequence(m, (vlp_pickle_kind)kind, items, n);
}

/* A tuple of the last n values. */
static vlp_status push_tuple(machine *m, int count) {
    size_t n = (size_t)count;
    if (m->depth - floor_of(m) < n) return damaged(m, "the stack is empty");
    m->depth -= n;
    vlp_pickle_value *items[3];
    memcpy(items, m->stack + m->depth, n * sizeof *items);
    return push_sequence(m, VLP_PICKLE_TUPLE, items, n);
}

static vlp_status keep_name(machine *m, const char *name, vlp_pickle_value *value) {
    vlp_pickle *p = m->pickle;
    char **more = vlp_realloc(p->names, (p->name_count + 1) * sizeof *more);
    if (!more) return VLP_ERR_MEMORY;
    p->names = more;
    more[p->name_count] = vlp_strdup(name);
    if (!more[p->name_count]) return VLP_ERR_MEMORY;
    value->text = more[p->name_count++];
    value->bytes = strlen(name);
    return VLP_OK;
}

static vlp_status push_global(machine *m, const char *module, size_t n, const char *name,
                              size_t k) {
    char full[2 * GLOBAL_BYTES], part[GLOBAL_BYTES];
    if (n >= GLOBAL_BYTES || k >= GLOBAL_BYTES) return damaged(m, "a very long global name");
    snprintf(part, sizeof part, "%.*s", (int)k, name);
    snprintf(full, sizeof full, "%.*s", (int)n, module);
    for (char *c = full; *c; c++)
        if ((unsigned char)*c < 0x20) *c = '?';
    for (char *c = part; *c; c++)
        if ((unsigned char)*c < 0x20) *c = '?';
    if (!m->allowed(full, part))
        return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                        "%s: holds a %s.%s, and only tensors are read, no code is run; save its "
                        "state_dict() alone",
                        m->where, full, part);
    size_t at = strlen(full);
    snprintf(full + at, sizeof full - at, ".%s", part);
    vlp_pickle_value *value = NULL;
    VLP_TRY(push_new(m, VLP_PICKLE_GLOBAL, &value));
    return keep_name(m, full, value);
}

static vlp_status global_lines(machine *m) {
    const char *module, *name;
    size_t n, k;
    VLP_TRY(take_line(m, &module, &n));
    VLP_TRY(take_line(m, &name, &k));
    return push_global(m, module, n, name, k);
}

static vlp_status global_stack(machine *m) {
    vlp_pickle_value *module, *name;
    VLP_TRY(pop(m, &name));
    VLP_TRY(pop(m, &module));
    if (module->kind != VLP_PICKLE_TEXT || name->kind != VLP_PICKLE_TEXT)
        return damaged(m, "a global that is no text");
    return push_global(m, module->text, module->bytes, name->text, name->bytes);
}

/* Notes a call; Python would make it here. */
static vlp_status call(machine *m) {
    vlp_pickle_value *callee, *arguments, *value;
    VLP_TRY(pop(m, &arguments));
    VLP_TRY(pop(m, &callee));
    if (callee->kind != VLP_PICKLE_GLOBAL || arguments->kind != VLP_PICKLE_TUPLE)
        return damaged(m, "a call of what is no global");
    VLP_TRY(push_new(m, VLP_PICKLE_CALL, &value));
    value->callee = callee;
    value->arguments = arguments;
    return VLP_OK;
}

static vlp_status persistent(machine *m) {
    vlp_pickle_value *arguments, *value;
    VLP_TRY(pop(m, &arguments));
    VLP_TRY(push_new(m, VLP_PICKLE_PERSISTENT, &value));
    value->arguments = arguments;
    return VLP_OK;
}

static vlp_status build(machine *m) {
    vlp_pickle_value *state, *object;
    VLP_TRY(pop(m, &state));
    VLP_TRY(peek(m, &object));
    if (object->kind != VLP_PICKLE_CALL) return damaged(m, "a state of what has none");
    object->state = state;
    return VLP_OK;
}

static bool has_items(const vlp_pickle_value *value, bool pairs) {
    return value->kind == VLP_PICKLE_CALL ||
           value->kind == (pairs ? VLP_PICKLE_DICT : VLP_PICKLE_LIST);
}

static vlp_status add_items(machine *m, vlp_pickle_value *const *items, size_t n, bool pairs) {
    vlp_pickle_value *to;
    VLP_TRY(peek(m, &to));
    if (!has_items(to, pairs) || (pairs && n % 2)) return damaged(m, "items of what has none");
    return append(to, items, n);
}

/* The last value to a list, or the last two as a key and its value to a dict. */
static vlp_status add_one(machine *m, int count) {
    size_t n = (size_t)count;
    if (m->depth - floor_of(m) < n) return damaged(m, "the stack is empty");
    m->depth -= n;
    vlp_pickle_value *items[2];
    memcpy(items, m->stack + m->depth, n * sizeof *items);
    return add_items(m, items, n, n == 2);
}

static vlp_status add_marked(machine *m, int pairs) {
    vlp_pickle_value **items;
    size_t n;
    VLP_TRY(take_marked(m, &items, &n));
    return add_items(m, items, n, pairs != 0);
}

static vlp_status put(machine *m, uint64_t slot) {
    vlp_pickle_value *value = NULL;
    VLP_TRY(peek(m, &value));
    if (slot >= (uint64_t)(m->end - m->data)) return damaged(m, "a memo beyond its length");
    VLP_TRY(grow((void **)&m->memo, &m->memo_room, (size_t)slot + 1, sizeof *m->memo));
    m->memo[slot] = value;
    m->memo_next = (size_t)slot + 1;
    return VLP_OK;
}

static vlp_status memoize(machine *m) {
    return put(m, m->memo_next);
}

static vlp_status put_slot(machine *m, int bytes) {
    uint64_t slot;
    VLP_TRY(number(m, bytes, &slot));
    return put(m, slot);
}

static vlp_status get_slot(machine *m, int bytes) {
    uint64_t slot;
    VLP_TRY(number(m, bytes, &slot));
    if (slot >= m->memo_room || !m->memo[slot]) return damaged(m, "a memo that was not filled");
    return push(m, m->memo[slot]);
}

static vlp_status push_bool(machine *m, int value) {
    return push_int(m, VLP_PICKLE_BOOL, value);
}

static vlp_status int_bytes(machine *m, int bytes) {
    uint64_t value;
    VLP_TRY(number(m, bytes, &value));
    return push_int(m, VLP_PICKLE_INT, bytes == 4 ? (int32_t)(uint32_t)value : (int64_t)value);
}

static vlp_status skip(machine *m, int bytes) {
    VLP_TRY(need(m, (size_t)bytes));
    m->at += bytes;
    return VLP_OK;
}

static vlp_status drop(machine *m) {
    vlp_pickle_value *value = NULL;
    return pop(m, &value);
}

static vlp_status stop(machine *m) {
    m->done = true;
    return m->mark_count ? damaged(m, "a mark is open at its end") : pop(m, &m->pickle->top);
}

static vlp_status push_plain(machine *m, int kind) {
    vlp_pickle_value *value = NULL;
    return push_new(m, (vlp_pickle_kind)kind, &value);
}

/* The opcodes by their bytes, with the names of Python's pickle module. One of the two runs. */
typedef struct {
    vlp_status (*run)(machine *m);
    vlp_status (*with)(machine *m, int operand);
    int operand; /* bytes that follow, values that are taken, or the kind that is made */
} opcode;

static const opcode opcodes[256] = {
    [0x80] = {.with = skip, .operand = 1}, /* PROTO */
    [0x95] = {.with = skip, .operand = 8}, /* FRAME */
    ['('] = {.run = mark},
    ['.'] = {.run = stop},
    ['0'] = {.run = drop},
    ['N'] = {.with = push_plain, .operand = VLP_PICKLE_NONE},
    [0x88] = {.with = push_bool, .operand = 1}, /* NEWTRUE */
    [0x89] = {.with = push_bool, .operand = 0}, /* NEWFALSE */
    ['J'] = {.with = int_bytes, .operand = 4},  /* BININT */
    ['K'] = {.with = int_bytes, .operand = 1},
    ['M'] = {.with = int_bytes, .operand = 2},
    [0x8a] = {.with = push_long, .operand = 1}, /* LONG1 */
    [0x8b] = {.with = push_long, .operand = 4}, /* LONG4 */
    ['G'] = {.run = push_float},
    ['X'] = {.with = push_text, .operand = 4},  /* BINUNICODE */
    ['T'] = {.with = push_text, .operand = 4},  /* BINSTRING */
    ['B'] = {.with = push_text, .operand = 4},  /* BINBYTES */
    ['U'] = {.with = push_text, .operand = 1},  /* SHORT_BINSTRING */
    ['C'] = {.with = push_text, .operand = 1},  /* SHORT_BINBYTES */
    [0x8c] = {.with = push_text, .operand = 1}, /* SHORT_BINUNICODE */
    [0x8d] = {.with = push_text, .operand = 8}, /* BINUNICODE8 */
    [0x8e] = {.with = push_text, .operand = 8}, /* BINBYTES8 */
    ['}'] = {.with = push_plain, .operand = VLP_PICKLE_DICT},
    ['d'] = {.with = push_marked, .operand = VLP_PICKLE_DICT},
    [']'] = {.with = push_plain, .operand = VLP_PICKLE_LIST},
    ['l'] = {.with = push_marked, .operand = VLP_PICKLE_LIST},
    [')'] = {.with = push_plain, .operand = VLP_PICKLE_TUPLE},
    ['t'] = {.with = push_marked, .operand = VLP_PICKLE_TUPLE},
    [0x85] = {.with = push_tuple, .operand = 1}, /* TUPLE1 */
    [0x86] = {.with = push_tuple, .operand = 2},
    [0x87] = {.with = push_tuple, .operand = 3},
    ['a'] = {.with = add_one, .operand = 1},    /* APPEND */
    ['e'] = {.with = add_marked, .operand = 0}, /* APPENDS */
    ['s'] = {.with = add_one, .operand = 2},    /* SETITEM */
    ['u'] = {.with = add_marked, .operand = 1}, /* SETITEMS */
    ['c'] = {.run = global_lines},
    [0x93] = {.run = global_stack},
    ['R'] = {.run = call},  /* REDUCE */
    [0x81] = {.run = call}, /* NEWOBJ */
    ['b'] = {.run = build},
    ['Q'] = {.run = persistent},
    ['q'] = {.with = put_slot, .operand = 1}, /* BINPUT */
    ['r'] = {.with = put_slot, .operand = 4},
    ['h'] = {.with = get_slot, .operand = 1}, /* BINGET */
    ['j'] = {.with = get_slot, .operand = 4},
    [0x94] = {.run = memoize},
};

static vlp_status step(machine *m) {
    uint64_t byte;
    VLP_TRY(number(m, 1, &byte));
    const opcode *code = &opcodes[byte];
    if (code->run) return code->run(m);
    if (code->with) return code->with(m, code->operand);
    return VLP_FAIL(VLP_ERR_UNSUPPORTED,
                    "%s: byte %zu of its pickle, 0x%02x, is none that tensors need", m->where,
                    (size_t)(m->at - m->data) - 1, (unsigned)byte);
}

vlp_status vlp_pickle_read(vlp_pickle **out, const uint8_t *data, size_t len,
                           vlp_pickle_allowed *allowed, const char *where) {
    *out = vlp_alloc_zero(1, sizeof **out);
    if (!*out) return VLP_ERR_MEMORY;
    machine m = {.pickle = *out,
                 .data = data,
                 .at = data,
                 .end = data + len,
                 .allowed = allowed,
                 .where = where};
    vlp_status status = VLP_OK;
    while (status == VLP_OK && !m.done) status = step(&m);
    vlp_free(m.stack);
    vlp_free(m.marks);
    vlp_free(m.memo);
    if (status == VLP_OK) return VLP_OK;
    vlp_pickle_free(*out);
    *out = NULL;
    return status;
}

void vlp_pickle_free(vlp_pickle *p) {
    if (!p) return;
    size_t used = p->used;
    while (p->chunks) {
        chunk *next = p->chunks->next;
        for (size_t i = 0; i < used; i++) vlp_free(p->chunks->values[i].items);
        used = CHUNK;
        vlp_free(p->chunks);
        p->chunks = next;
    }
    for (size_t i = 0; i < p->name_count; i++) vlp_free(p->names[i]);
    vlp_free(p->names);
    vlp_free(p);
}

const vlp_pickle_value *vlp_pickle_top(const vlp_pickle *pickle) {
    return pickle->top;
}

bool vlp_pickle_is_text(const vlp_pickle_value *value, const char *text) {
    size_t n = strlen(text);
    return value && value->kind == VLP_PICKLE_TEXT && value->bytes == n &&
           memcmp(value->text, text, n) == 0;
}

bool vlp_pickle_is_global(const vlp_pickle_value *value, const char *name) {
    return value && value->kind == VLP_PICKLE_GLOBAL && strcmp(value->text, name) == 0;
}

bool vlp_pickle_is_call(const vlp_pickle_value *value, const char *name) {
    return value && value->kind == VLP_PICKLE_CALL && vlp_pickle_is_global(value->callee, name);
}

const vlp_pickle_value *vlp_pickle_key(const vlp_pickle_value *dict, const char *key) {
    for (size_t i = 0; dict && i + 1 < dict->count; i += 2)
        if (vlp_pickle_is_text(dict->items[i], key)) return dict->items[i + 1];
    return NULL;
}
