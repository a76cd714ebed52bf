/* glob.c - file-name patterns of plans: see glob.h.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * A pattern is read token by token. For each token the set of places in the path that the pattern
 * so far can have reached is carried forward, one byte a place. That costs pattern x path at worst,
 * whatever the number of stars: there is no backtracking that a hostile pattern could drive up.
 */
#include "glob.h"

#include <stdint.h>
#include <string.h>

#include "plan_utf8.h"
#include "scr_crit.h"

enum token_kind {
    TOKEN_END,
    TOKEN_LITERAL,   /* one byte */
    TOKEN_ONE,       /* ? */
    TOKEN_SET,       /* [...] */
    TOKEN_STAR,      /* * */
    TOKEN_GLOBSTAR,  /* ** */
    TOKEN_FOLDERS,   /* globstar and slash where a name begins: whole folders, also none */
    TOKEN_RANK,      /* {rank} */
    TOKEN_RANK_NEXT, /* {rank+1} */
    TOKEN_DATASET,   /* {dataset} */
    TOKEN_MALFORMED
};

struct token {
    enum token_kind kind;
    const char *text; /* where it begins in the pattern */
    size_t size;      /* bytes it takes there */
    const char *fault;
};

/* What a pattern is matched against. */
struct subject {
    const char *path;
    size_t size;
    int rank;
    const char *dataset;
};

/* Places in a path that can be reached: reached[i] for the place before byte i. */
struct places {
    uint8_t reached[CRIT_GLOB_TEXT_MAX + 1];
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* A character of a set or a path; a byte that is not UTF-8 becomes a code no set can hold. */
static size_t next_char(const char *text, size_t size, uint32_t *code)
{
    size_t width = crit_utf8_decode((const uint8_t *)text, size, code);

    if (width == 0) {
        *code = 0x110000u + (uint8_t)text[0];
        return 1;
    }
    return width;
}

/* ---- Tokens -----------------------------------------------------------------------------------
 */

static struct token malformed(const char *text, const char *fault)
{
    return (struct token){.kind = TOKEN_MALFORMED, .text = text, .size = 1, .fault = fault};
}

/* One item of a set, "a" or "a-z". Returns bytes taken, 0 at a fault. */
static size_t read_set_item(const char *text, uint32_t *low, uint32_t *high)
{
    size_t size = strlen(text);
    size_t taken = size ? next_char(text, size, low) : 0;

    *high = *low;
    if (taken && text[taken] == '-' && text[taken + 1] != ']' && text[taken + 1] != '\0') {
        taken++;
        taken += next_char(text + taken, size - taken, high);
    }
    return *high < *low ? 0 : taken;
}

/* Where the items of a set begin: after "[" and its negation. */
static const char *set_items(const char *text, bool *negated)
{
    *negated = text[1] == '!' || text[1] == '^';
    return text + (*negated ? 2 : 1);
}

static struct token read_set(const char *text)
{
    bool negated;
    const char *cursor = set_items(text, &negated);
    const char *first = cursor;

    while (*cursor != ']' || cursor == first) {
        uint32_t low = 0, high;
        size_t taken;

        if (*cursor == '\0')
            return malformed(text, "a set without its closing ]");
        taken = read_set_item(cursor, &low, &high);
        if (taken == 0)
            return malformed(cursor, "a range that runs backwards");
        if (low >= 0x110000 || high >= 0x110000)
            return malformed(cursor, "text that is not UTF-8");
        cursor += taken;
    }
    return (struct token){.kind = TOKEN_SET, .text = text, .size = (size_t)(cursor + 1 - text)};
}

static struct token read_field(const char *text)
{
    static const struct {
        const char *name;
        enum token_kind kind;
    } fields[] = {
        {"{rank}", TOKEN_RANK}, {"{rank+1}", TOKEN_RANK_NEXT}, {"{dataset}", TOKEN_DATASET}};

    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        size_t size = strlen(fields[i].name);
        if (strncmp(text, fields[i].name, size) == 0)
            return (struct token){.kind = fields[i].kind, .text = text, .size = size};
    }
    return malformed(
        text, "braces that hold neither rank, rank+1 nor dataset; write [{] for the character");
}

/* The token at `text`, which lies in `pattern`. */
static struct token read_token(const char *pattern, const char *text)
{
    bool folder_begins = text == pattern || text[-1] == '/';

    switch (*text) {
    case '\0':
        return (struct token){.kind = TOKEN_END, .text = text};
    case '?':
        return (struct token){.kind = TOKEN_ONE, .text = text, .size = 1};
    case '[':
        return read_set(text);
    case '{':
        return read_field(text);
    case '*':
        if (text[1] != '*')
            return (struct token){.kind = TOKEN_STAR, .text = text, .size = 1};
        if (text[2] == '/' && folder_begins)
            return (struct token){.kind = TOKEN_FOLDERS, .text = text, .size = 3};
        return (struct token){.kind = TOKEN_GLOBSTAR, .text = text, .size = 2};
    default:
        return (struct token){.kind = TOKEN_LITERAL, .text = text, .size = 1};
    }
}

static bool is_rank(enum token_kind kind)
{
    return kind == TOKEN_RANK || kind == TOKEN_RANK_NEXT;
}

/* Whether the token takes text that the pattern does not spell out. */
static bool is_wildcard(enum token_kind kind, const struct subject *subject)
{
    switch (kind) {
    case TOKEN_ONE:
    case TOKEN_SET:
    case TOKEN_STAR:
    case TOKEN_GLOBSTAR:
        return true;
    case TOKEN_DATASET:
        return subject->dataset == NULL;
    default:
        return false;
    }
}

/* ---- One token's step -------------------------------------------------------------------------
 */

static bool set_holds(const struct token *set, uint32_t code)
{
    bool negated;
    const char *cursor = set_items(set->text, &negated);
    const char *end = set->text + set->size - 1;

    while (cursor < end) {
        uint32_t low = 0, high;
        cursor += read_set_item(cursor, &low, &high);
        if (code >= low && code <= high)
            return !negated;
    }
    return negated;
}

/* One character: a literal byte, any character, or one of a set. */
static void step_character(const struct token *token, const struct subject *subject,
                           const struct places *from, struct places *to)
{
    for (size_t i = 0; i < subject->size; i++) {
        uint32_t code;
        size_t width;

        if (!from->reached[i])
            continue;
        if (token->kind == TOKEN_LITERAL) {
            to->reached[i + 1] = subject->path[i] == *token->text;
            continue;
        }
        width = next_char(subject->path + i, subject->size - i, &code);
        if (code != '/' && (token->kind == TOKEN_ONE || set_holds(token, code)))
            to->reached[i + width] = 1;
    }
}

/* Text without '/' (star, unknown dataset) or any text (globstar), of at least `least` bytes. */
static void step_text(bool stops_at_slash, size_t least, const struct subject *subject,
                      const struct places *from, struct places *to)
{
    bool running = false;

    for (size_t i = 0; i <= subject->size; i++) {
        to->reached[i] = running || (least == 0 && from->reached[i]);
        running = running || from->reached[i];
        if (stops_at_slash && i < subject->size && subject->path[i] == '/')
            running = false;
    }
}

static void step_folders(const struct subject *subject, const struct places *from,
                         struct places *to)
{
    bool running = false;

    for (size_t i = 0; i <= subject->size; i++) {
        running = running || from->reached[i];
        if (from->reached[i] || (running && i > 0 && subject->path[i - 1] == '/'))
            to->reached[i] = 1;
    }
}

/* Decimal digits equal to `wanted` (-1: any number). next_wild, last_wild: whether the neighbouring
 * tokens could take digits of the same number, which would cut it. */
static void step_number(int64_t wanted, bool last_wild, bool next_wild,
                        const struct subject *subject, const struct places *from, struct places *to)
{
    const char *path = subject->path;

    for (size_t i = 0; i < subject->size; i++) {
        int64_t value = 0;

        if (!from->reached[i] || (last_wild && i > 0 && is_digit(path[i - 1])))
            continue;
        for (size_t end = i + 1; end <= subject->size && is_digit(path[end - 1]); end++) {
            bool cut = next_wild && end < subject->size && is_digit(path[end]);

            if (wanted >= 0)
                value = value * 10 + (path[end - 1] - '0');
            if (value > wanted && wanted >= 0)
                break;
            if ((wanted < 0 || value == wanted) && !cut)
                to->reached[end] = 1;
        }
    }
}

static void step_dataset(const struct subject *subject, const struct places *from,
                         struct places *to)
{
    size_t size = strlen(subject->dataset);

    for (size_t i = 0; i + size <= subject->size; i++)
        if (from->reached[i] && memcmp(subject->path + i, subject->dataset, size) == 0)
            to->reached[i + size] = 1;
}

static void step(const struct token *token, bool last_wild, bool next_wild,
                 const struct subject *subject, const struct places *from, struct places *to)
{
    int64_t rank = subject->rank;

    memset(to->reached, 0, subject->size + 1);
    switch (token->kind) {
    case TOKEN_STAR:
        step_text(true, 0, subject, from, to);
        break;
    case TOKEN_GLOBSTAR:
        step_text(false, 0, subject, from, to);
        break;
    case TOKEN_FOLDERS:
        step_folders(subject, from, to);
        break;
    case TOKEN_RANK:
        step_number(rank, last_wild, next_wild, subject, from, to);
        break;
    case TOKEN_RANK_NEXT:
        step_number(rank < 0 ? -1 : rank + 1, last_wild, next_wild, subject, from, to);
        break;
    case TOKEN_DATASET:
        if (subject->dataset)
            step_dataset(subject, from, to);
        else
            step_text(true, 1, subject, from, to);
        break;
    default:
        step_character(token, subject, from, to);
        break;
    }
}

/* ---- Entrances --------------------------------------------------------------------------------
 */

const char *crit_glob_fault(const char *pattern, size_t *at)
{
    const char *cursor = pattern;
    enum token_kind last = TOKEN_END;

    *at = 0;
    if (*pattern == '\0')
        return "an empty pattern";
    if (strlen(pattern) > CRIT_GLOB_TEXT_MAX)
        return "a pattern longer than a path can be";
    while (*cursor != '\0') {
        struct token token = read_token(pattern, cursor);
        uint32_t code;

        *at = (size_t)(token.text - pattern);
        if (token.kind == TOKEN_MALFORMED)
            return token.fault;
        if (is_rank(token.kind) && is_rank(last))
            return "two numbers side by side";
        if (token.kind == TOKEN_LITERAL) {
            token.size = crit_utf8_decode((const uint8_t *)cursor, strlen(cursor), &code);
            if (token.size == 0)
                return "text that is not UTF-8";
        }
        last = token.kind;
        cursor += token.size;
    }
    return NULL;
}

bool crit_glob_match(const char *pattern, const char *path, int rank, const char *dataset)
{
    struct subject subject = {path, strlen(path), rank, dataset};
    struct places places[2];
    struct token token = read_token(pattern, pattern);
    bool last_wild = false;
    int now = 0;

    if (subject.size > CRIT_GLOB_TEXT_MAX)
        return false;
    memset(places[now].reached, 0, subject.size + 1);
    places[now].reached[0] = 1;
    while (token.kind != TOKEN_END) {
        struct token next = read_token(pattern, token.text + token.size);

        step(&token, last_wild, is_wildcard(next.kind, &subject), &subject, &places[now],
             &places[1 - now]);
        now = 1 - now;
        last_wild = is_wildcard(token.kind, &subject);
        token = next;
    }
    return places[now].reached[subject.size];
}

bool crit_glob_names_rank(const char *pattern)
{
    struct token token = read_token(pattern, pattern);

    while (token.kind != TOKEN_END) {
        if (is_rank(token.kind))
            return true;
        token = read_token(pattern, token.text + token.size);
    }
    return false;
}

int scr_crit_glob(const char *pattern, const char *path, int rank, const char *dataset)
{
    size_t at;

    if (pattern == NULL || path == NULL || rank < -1 || crit_glob_fault(pattern, &at) != NULL)
        return -1;
    return crit_glob_match(pattern, path, rank, dataset) ? 1 : 0;
}
