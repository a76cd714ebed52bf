/* test_plan_glob.c - file-name patterns (core/glob.h; docs/format.md, "Patterns").
 *
 * SPDX-License-Identifier: BSD-3-Clause
 */
#include "check.h"
#include "glob.h"

struct example {
    const char *pattern, *path;
    int rank;
    const char *dataset;
    int expected;
};

static void check_examples(const struct example *examples, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct example *e = &examples[i];
        int found = scr_crit_glob(e->pattern, e->path, e->rank, e->dataset);

        CHECK_U64(found, e->expected);
        if (found != e->expected)
            fprintf(stderr, "  pattern %s, path %s, rank %d, dataset %s\n", e->pattern, e->path,
                    e->rank, e->dataset ? e->dataset : "unknown");
    }
}

#define CHECK_EXAMPLES(examples) check_examples(examples, sizeof examples / sizeof examples[0])

static void wildcards_stop_at_slashes(void)
{
    static const struct example examples[] = {
        {"a", "a", -1, NULL, 1},
        {"a", "ab", -1, NULL, 0},
        {"a", "", -1, NULL, 0},
        {"a b", "a b", -1, NULL, 1},
        {"*", "", -1, NULL, 1},
        {"*", "a.b", -1, NULL, 1},
        {"*", "a/b", -1, NULL, 0},
        {"ckpt.*/heat.*", "ckpt.40/heat.0", -1, NULL, 1},
        {"ckpt.*/heat.*", "ckpt.40/x/heat.0", -1, NULL, 0},
        {"?", "a", -1, NULL, 1},
        {"?", "/", -1, NULL, 0},
        {"?", "\xc3\xa9", -1, NULL, 1}, /* one character of two bytes */
        {"??", "\xc3\xa9", -1, NULL, 0},
        {"?", "\xc3", -1, NULL, 1}, /* a byte that is no UTF-8 */
        {"*b*c", "abxbyc", -1, NULL, 1},
        {"*b*c", "abxbycd", -1, NULL, 0},
        {"**", "", -1, NULL, 1},
        {"**", "a/b/c", -1, NULL, 1},
        {"**.dat", "a/b/c.dat", -1, NULL, 1},
        {"a**z", "a/b/z", -1, NULL, 1},
        {"***", "a/b", -1, NULL, 1},
        {"**/b", "b", -1, NULL, 1},
        {"**/b", "a/b", -1, NULL, 1},
        {"**/b", "a/c/b", -1, NULL, 1},
        {"**/b", "ab", -1, NULL, 0},
        {"a/**/b", "a/b", -1, NULL, 1},
        {"a/**/b", "a/x/y/b", -1, NULL, 1},
        {"a/**/b", "a/xb", -1, NULL, 0},
        {"a**/b", "a/b", -1, NULL, 1},
        {"a**/b", "ab", -1, NULL, 0},
        {"a/**/**/b", "a/b", -1, NULL, 1},
        {"a**b/*c", "a/x/b/b/c", -1, NULL, 1}, /* the first star must be taken up again */
    };
    CHECK_EXAMPLES(examples);
}

static void sets_hold_characters(void)
{
    static const struct example examples[] = {
        {"[abc]", "b", -1, NULL, 1},
        {"[abc]", "d", -1, NULL, 0},
        {"[a-c]x", "bx", -1, NULL, 1},
        {"[!a-c]", "d", -1, NULL, 1},
        {"[^a-c]", "d", -1, NULL, 1},
        {"[!a-c]", "b", -1, NULL, 0},
        {"[!a]", "/", -1, NULL, 0},
        {"[/]", "/", -1, NULL, 0},
        {"[+-0]", "/", -1, NULL, 0},
        {"[]]", "]", -1, NULL, 1},
        {"[!]]", "]", -1, NULL, 0},
        {"[]-a]", "^", -1, NULL, 1},
        {"[a-]", "-", -1, NULL, 1},
        {"[-a]", "-", -1, NULL, 1},
        {"[*]", "*", -1, NULL, 1},
        {"[*]", "a", -1, NULL, 0},
        {"[[]", "[", -1, NULL, 1},
        {"[{]rank}", "{rank}", 3, NULL, 1},
        {"[\xc3\xa9-\xc3\xbc]", "\xc3\xaa", -1, NULL, 1},
        {"[\xc3\xa9]", "\xc3", -1, NULL, 0},
        {"[!a]", "\xff", -1, NULL, 1},
        {"a}", "a}", -1, NULL, 1},
        {"a]", "a]", -1, NULL, 1},
    };
    CHECK_EXAMPLES(examples);
}

static void fields_are_the_ranks_and_the_datasets(void)
{
    static const struct example examples[] = {
        {"r{rank}", "r3", 3, NULL, 1},
        {"r{rank}", "r003", 3, NULL, 1},
        {"r{rank}", "r30", 3, NULL, 0},
        {"r{rank}", "r13", 3, NULL, 0},
        {"r{rank}", "r", 3, NULL, 0},
        {"r{rank}", "r0", 0, NULL, 1},
        {"r{rank}", "r000", 0, NULL, 1},
        {"r{rank}", "r", 0, NULL, 0},
        {"r{rank}", "r", -1, NULL, 0},
        {"r{rank}", "r12345678901234567890123", -1, NULL, 1},
        {"r{rank}", "r12345678901234567890123", 3, NULL, 0},
        {"r{rank}", "r2147483647", 2147483647, NULL, 1},
        {"r{rank+1}", "r2147483648", 2147483647, NULL, 1},
        {"r{rank+1}", "r4", 3, NULL, 1},
        {"r{rank+1}", "r3", 3, NULL, 0},
        {"r{rank+1}", "r77", -1, NULL, 1},
        {"r{rank}.x", "r3.x", 3, NULL, 1},
        {"*{rank}.x", "r3.x", 3, NULL, 1},
        {"*{rank}.x", "r13.x", 3, NULL, 0}, /* a wildcard does not cut a number */
        {"{rank}*", "31", 3, NULL, 0},
        {"{rank}*", "3a1", 3, NULL, 1},
        {"[0-9]{rank}", "13", 3, NULL, 0},
        {"1{rank}", "13", 3, NULL, 1}, /* what the pattern spells out may stand beside it */
        {"{rank}0", "30", 3, NULL, 1},
        {"{rank}.{rank+1}", "3.4", 3, NULL, 1},
        {"{rank}.{rank+1}", "3.5", 3, NULL, 0},
        {"{dataset}", "ckpt.1", -1, "ckpt.1", 1},
        {"{dataset}", "ckpt.2", -1, "ckpt.1", 0},
        {"{dataset}/f", "a/b/f", -1, "a/b", 1},
        {"{dataset}/f", "a/b/f", -1, NULL, 0},
        {"{dataset}/f", "b/f", -1, NULL, 1},
        {"{dataset}/f", "/f", -1, NULL, 0},
        {"{dataset}{rank}", "ckpt13", 3, "ckpt1", 1},
        {"{dataset}{rank}", "ckpt13", 3, NULL, 0},
        {"{dataset}*", "ckpt*x", -1, "ckpt*", 1}, /* a name is text, not a pattern */
        {"{dataset}", "x", -1, "ckpt*", 0},
    };
    CHECK_EXAMPLES(examples);
}

static void malformed_patterns_are_refused(void)
{
    static const char *const patterns[] = {
        "",     "[",     "[a",       "[!",     "[]",           "[z-a]",
        "{",    "{rank", "{rank+2}", "{Rank}", "{rank}{rank}", "{rank}{rank+1}",
        "\xc3", "a\xff", "[\xff]"};
    char *longest = malloc(CRIT_GLOB_TEXT_MAX + 2);

    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        size_t at;
        CHECK(crit_glob_fault(patterns[i], &at) != NULL);
        CHECK(at <= strlen(patterns[i]));
        CHECK(scr_crit_glob(patterns[i], "x", -1, NULL) == -1);
    }
    memset(longest, 'a', CRIT_GLOB_TEXT_MAX + 1);
    longest[CRIT_GLOB_TEXT_MAX + 1] = '\0';
    CHECK(scr_crit_glob(longest, longest, -1, NULL) == -1);
    CHECK(scr_crit_glob("*", longest, -1, NULL) == 0); /* no file can have such a name */
    longest[CRIT_GLOB_TEXT_MAX] = '\0';
    CHECK(scr_crit_glob(longest, longest, -1, NULL) == 1);
    CHECK(scr_crit_glob("*", longest, -1, NULL) == 1);
    CHECK(scr_crit_glob(NULL, "x", -1, NULL) == -1);
    CHECK(scr_crit_glob("x", NULL, -1, NULL) == -1);
    CHECK(scr_crit_glob("x", "x", -2, NULL) == -1);
    free(longest);
}

/* A matcher that backtracks would not end before the machine does. */
static void hostile_patterns_end(void)
{
    char pattern[CRIT_GLOB_TEXT_MAX + 1], path[CRIT_GLOB_TEXT_MAX + 1];

    memset(path, 'a', CRIT_GLOB_TEXT_MAX);
    path[CRIT_GLOB_TEXT_MAX] = '\0';
    for (size_t i = 0; i < CRIT_GLOB_TEXT_MAX; i++)
        pattern[i] = i % 3 == 2 ? 'a' : '*';
    pattern[CRIT_GLOB_TEXT_MAX - 1] = 'b';
    pattern[CRIT_GLOB_TEXT_MAX] = '\0';
    CHECK(scr_crit_glob(pattern, path, -1, NULL) == 0);
    memset(path, '1', CRIT_GLOB_TEXT_MAX);
    for (size_t i = 0; i + 7 < CRIT_GLOB_TEXT_MAX; i += 7)
        memcpy(pattern + i, "*{rank}", 7);
    CHECK(scr_crit_glob(pattern, path, -1, NULL) == 0);
}

static void a_pattern_that_names_the_rank_is_tied(void)
{
    CHECK(crit_glob_names_rank("a{rank}"));
    CHECK(crit_glob_names_rank("a{rank+1}b"));
    CHECK(!crit_glob_names_rank("a{dataset}"));
    CHECK(!crit_glob_names_rank("[{]rank}"));
}

int main(void)
{
    wildcards_stop_at_slashes();
    sets_hold_characters();
    fields_are_the_ranks_and_the_datasets();
    malformed_patterns_are_refused();
    hostile_patterns_end();
    a_pattern_that_names_the_rank_is_tied();
    return check_result();
}
