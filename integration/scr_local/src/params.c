/*
 * params.c - see params.h. May use collective.h (rank 0 alone reads the file, so that all ranks see
 * the same text). Tests: test_scr_local.py (precedence, file, SCR_Config).
 */
#include "params.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collective.h"
#include "job.h"
#include "memory.h"
#include "message.h"
#include "path.h"

typedef struct {
    char *key;
    char *value;
} pair;

typedef struct {
    pair own;
    pair *children;
    int child_count;
} param;

typedef struct {
    param *params;
    int count;
} layer;

static layer user_layer;
static layer program_layer;
static int loaded;

static void free_pair(pair *which)
{
    free(which->key);
    free(which->value);
}

static void free_param(param *which)
{
    for (int i = 0; i < which->child_count; i++) {
        free_pair(&which->children[i]);
    }
    free(which->children);
    free_pair(&which->own);
}

static void free_layer(layer *where)
{
    for (int i = 0; i < where->count; i++) {
        free_param(&where->params[i]);
    }
    free(where->params);
    *where = (layer){0};
}

/* The param with this key and, unless NULL, this value; of several the last: it wins, as in SCR. */
static param *find(const layer *where, const char *key, const char *value)
{
    for (int i = where->count - 1; i >= 0; i--) {
        param *candidate = &where->params[i];
        if (strcmp(candidate->own.key, key) == 0 &&
            (!value || strcmp(candidate->own.value, value) == 0)) {
            return candidate;
        }
    }
    return NULL;
}

static param *find_or_add(layer *where, const char *key, const char *value)
{
    param *known = find(where, key, value);
    if (known) {
        return known;
    }
    where->params = scrl_grow(where->params, (size_t)(where->count + 1) * sizeof(param));
    param *added = &where->params[where->count++];
    *added = (param){.own = {scrl_strdup(key), scrl_strdup(value)}};
    return added;
}

static void remove_key(layer *where, const char *key)
{
    int kept = 0;
    for (int i = 0; i < where->count; i++) {
        if (strcmp(where->params[i].own.key, key) == 0) {
            free_param(&where->params[i]);
        } else {
            where->params[kept++] = where->params[i];
        }
    }
    where->count = kept;
}

static pair *find_child(const param *parent, const char *key)
{
    for (int i = 0; parent && i < parent->child_count; i++) {
        if (strcmp(parent->children[i].key, key) == 0) {
            return &parent->children[i];
        }
    }
    return NULL;
}

/* A NULL value removes the child. */
static void set_child(param *parent, const char *key, const char *value)
{
    pair *child = find_child(parent, key);
    if (!value) {
        if (child) {
            free_pair(child);
            *child = parent->children[--parent->child_count];
        }
        return;
    }
    if (!child) {
        size_t size = (size_t)(parent->child_count + 1) * sizeof(pair);
        parent->children = scrl_grow(parent->children, size);
        child = &parent->children[parent->child_count++];
        *child = (pair){.key = scrl_strdup(key)};
    }
    free(child->value);
    child->value = scrl_strdup(value);
}

/* Length of a variable's name at `text`. */
static size_t name_span(const char *text)
{
    size_t length = 0;
    while (isalnum((unsigned char)text[length]) || text[length] == '_') {
        length++;
    }
    return length;
}

/* Looks at the "$NAME" or "${NAME}" at `text`: its full length (0 if it is none) and its value. */
static size_t variable_at(const char *text, const char **value)
{
    int braced = text[1] == '{';
    const char *name = text + 1 + braced;
    size_t length = name_span(name);
    if (text[0] != '$' || length == 0 || (braced && name[length] != '}')) {
        return 0;
    }
    char *copy = scrl_alloc(length + 1);
    memcpy(copy, name, length);
    *value = getenv(copy);
    if (!*value) {
        *value = "";
    }
    free(copy);
    return 1 + (size_t)braced + length + (size_t)braced;
}

static char *expand_variables(const char *text)
{
    char *out = scrl_strdup("");
    size_t length = 0;
    while (*text) {
        const char *piece = text;
        size_t span = variable_at(text, &piece);
        size_t size = span > 0 ? strlen(piece) : 1;
        out = scrl_grow(out, length + size + 1);
        memcpy(out + length, piece, size);
        length += size;
        text += span > 0 ? span : 1;
    }
    out[length] = '\0';
    return out;
}

char *scrl_param(const char *key)
{
    const char *value = getenv(key);
    if (!value) {
        const param *found = find(&user_layer, key, NULL);
        if (!found) {
            found = find(&program_layer, key, NULL);
        }
        value = found ? found->own.value : NULL;
    }
    return value ? expand_variables(value) : NULL;
}

static int count_values(const layer *where, const char *key)
{
    int count = 0;
    for (int i = 0; i < where->count; i++) {
        count += strcmp(where->params[i].own.key, key) == 0;
    }
    return count;
}

int scrl_param_values(const char *key)
{
    if (getenv(key)) {
        return 1;
    }
    int count = count_values(&user_layer, key);
    return count > 0 ? count : count_values(&program_layer, key);
}

char *scrl_param_child(const char *key, const char *value, const char *child)
{
    const layer *where = find(&user_layer, key, NULL) ? &user_layer : &program_layer;
    const pair *found = find_child(find(where, key, value), child);
    return found ? expand_variables(found->value) : NULL;
}

/* A blank, a tab; not the end of a line. */
static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\r");
}

/* Copies a key (upper case) or a value (backslash takes the next character as it is). */
static char *copy_token(const char *text, size_t length, int is_key)
{
    char *token = scrl_alloc(length + 1);
    char *out = token;
    for (size_t i = 0; i < length; i++) {
        if (!is_key && text[i] == '\\' && i + 1 < length) {
            i++;
        }
        *out++ = is_key ? (char)toupper((unsigned char)text[i]) : text[i];
    }
    return token;
}

/* Reads one "key = value" at *at. Returns 0, or -1 when the text has another form. */
static int parse_pair(const char **at, pair *result)
{
    const char *key = *at;
    size_t key_length = strcspn(key, " \t\r=");
    const char *equals = skip_blanks(key + key_length);
    if (key_length == 0 || *equals != '=') {
        return -1;
    }
    const char *value = skip_blanks(equals + 1);
    size_t value_length = strcspn(value, " \t\r");
    if (value_length == 0) {
        return -1;
    }
    result->key = copy_token(key, key_length, 1);
    result->value = copy_token(value, value_length, 0);
    *at = skip_blanks(value + value_length);
    return 0;
}

/* One line: the first pair is the parameter, further ones are its children; '#' ends the line. */
static int parse_line(const char *line, layer *where)
{
    param *parent = NULL;
    const char *at = skip_blanks(line);
    while (*at && *at != '#') {
        pair found;
        if (parse_pair(&at, &found) != 0) {
            return -1;
        }
        if (parent) {
            set_child(parent, found.key, found.value);
        } else {
            parent = find_or_add(where, found.key, found.value);
        }
        free_pair(&found);
    }
    return 0;
}

static void parse_text(char *text, const char *path)
{
    int number = 1;
    for (char *line = text; line; number++) {
        char *end = strchr(line, '\n');
        if (end) {
            *end = '\0';
        }
        if (parse_line(line, &user_layer) != 0 && scrl.rank == 0) {
            scrl_err(
                "`%s' line %d: expected KEY=VALUE, found `%s'; the rest of the line is ignored",
                path, number, line);
        }
        line = end ? end + 1 : NULL;
    }
}

/* The file's text, or NULL when it cannot be read (a missing file is no error). */
static char *read_text(const char *path)
{
    FILE *file = fopen(path, "r");
    if (!file) {
        if (errno != ENOENT) {
            scrl_warn("cannot read the parameter file `%s': %s", path, strerror(errno));
        }
        return NULL;
    }
    char *text = scrl_alloc(1);
    size_t length = 0;
    char part[4096];
    size_t got;
    while ((got = fread(part, 1, sizeof(part), file)) > 0) {
        text = scrl_grow(text, length + got + 1);
        memcpy(text + length, part, got);
        length += got;
    }
    text[length] = '\0';
    fclose(file);
    return text;
}

static char *user_file_path(void)
{
    char *path = scrl_param("SCR_CONF_FILE");
    if (path) {
        return path;
    }
    char *prefix = scrl_param("SCR_PREFIX");
    path = scrl_format("%s/.scrconf", prefix ? prefix : ".");
    free(prefix);
    return path;
}

static void read_user_file(void)
{
    free_layer(&user_layer);
    char *path = user_file_path();
    char *text = scrl.rank == 0 ? read_text(path) : NULL;
    char *shared = scrl_text_from_root(text);
    if (shared) {
        parse_text(shared, path);
    }
    free(shared);
    free(text);
    free(path);
}

void scrl_params_load(void)
{
    if (!loaded) {
        loaded = 1;
        read_user_file();
    }
}

static int moves_user_file(const char *key)
{
    return strcmp(key, "SCR_PREFIX") == 0 || strcmp(key, "SCR_CONF_FILE") == 0;
}

void scrl_param_set(const char *key, const char *value)
{
    remove_key(&program_layer, key);
    if (value) {
        find_or_add(&program_layer, key, value);
    }
    if (moves_user_file(key)) {
        loaded = 1;
        read_user_file();
    }
}

void scrl_param_set_child(const char *key, const char *value, const char *child,
                          const char *child_value)
{
    set_child(find_or_add(&program_layer, key, value), child, child_value);
}

void scrl_params_free(void)
{
    free_layer(&user_layer);
    free_layer(&program_layer);
    loaded = 0;
}
