/* A run that is killed, stopped or cut off between two files of a checkpoint goes on as if nothing
 * had happened. The runs are processes of their own: this program, called with --train. */
#include "tests/fixture_corpus.h"

#include "core/threads.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

enum { PICTURES = 22, DONE = 0, FAILED = 2, STOPPED = 130 };

/* The process ends right after its n-th change of the file system. */
static long die_at, changes;

static int changed(long result) {
    if (++changes == die_at) raise(SIGKILL);
    return (int)result;
}

int rename(const char *from, const char *to) {
    return changed(syscall(SYS_renameat, AT_FDCWD, from, AT_FDCWD, to));
}

int unlink(const char *path) {
    return changed(syscall(SYS_unlinkat, AT_FDCWD, path, 0));
}

int rmdir(const char *path) {
    return changed(syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR));
}

int mkdir(const char *path, mode_t mode) {
    return changed(syscall(SYS_mkdirat, AT_FDCWD, path, mode));
}

int fsync(int fd) {
    (void)fd; /* the kernel lives on: nothing needs to reach the disk */
    return changed(0);
}

static volatile int stop;
static int64_t stop_at, die_step;

static void on_signal(int number) {
    (void)number;
    stop = 1;
}

/* Ends the process at some moment of the next steps or of their checkpoint. */
static void *end_soon(void *unused) {
    (void)unused;
    vlp_rng rng = vlp_rng_at((uint64_t)getpid(), VLP_RNG_TEST, 0, 0);
    nanosleep(&(struct timespec){0, (long)(3e6 * vlp_rng_double(&rng))}, NULL);
    raise(SIGKILL);
    return NULL;
}

static void on_step(const vlp_train_progress *p, void *user) {
    (void)user;
    pthread_t thread;
    if (p->step == stop_at) stop = 1;
    if (p->step == die_step) pthread_create(&thread, NULL, end_soon, NULL);
}

static vlp_status train(const corpus *c, const char *recipe_name, const char *out, const char *keys,
                        const char *init) {
    vlp_recipe recipe;
    fixture_run run;
    char path[700], model[700];
    vlp_train_options *options = fixture_options(&run, c, out);
    snprintf(path, sizeof path, "%s/recipe.json", run.out);
    options->resume = vlp_path_exists(path);
    options->stop = &stop;
    options->on_step = on_step;
    snprintf(model, sizeof model, "%s/%s", c->folder, init);
    if (*init && !options->resume) options->init = model; /* people do not repeat it */
    VLP_TRY(fixture_recipe(&recipe, recipe_name, keys));
    vlp_trainer *trainer;
    vlp_train_summary summary;
    VLP_TRY(vlp_trainer_open(&trainer, &recipe, options));
    vlp_status status = vlp_trainer_run(trainer, &summary);
    vlp_trainer_free(trainer);
    return status;
}

/* --train FOLDER RECIPE OUT KEYS THREADS STOP_AT DIE_AT DIE_STEP INIT */
static int child(char **argv) {
    corpus c;
    snprintf(c.folder, sizeof c.folder, "%s", argv[0]);
    signal(SIGTERM, on_signal);
    if (vlp_threads_set(atoi(argv[4])) != VLP_OK) return FAILED;
    stop_at = atoi(argv[5]);
    die_at = atoi(argv[6]);
    die_step = atoi(argv[7]);
    vlp_status status = train(&c, argv[1], argv[2], argv[3], argv[8]);
    if (status == VLP_OK) return DONE;
    if (status == VLP_ERR_INTERRUPTED) return STOPPED;
    fprintf(stderr, "%s\n", vlp_error());
    return FAILED;
}

typedef struct {
    corpus *c;
    const char *recipe, *out, *keys, *init;
    int threads;
    long stop_at, die_at, die_step;
} job;

static pid_t start(const job *j) {
    char threads[16], stop_text[24], die_text[24], step_text[24];
    snprintf(threads, sizeof threads, "%d", j->threads ? j->threads : 2);
    snprintf(stop_text, sizeof stop_text, "%ld", j->stop_at);
    snprintf(die_text, sizeof die_text, "%ld", j->die_at);
    snprintf(step_text, sizeof step_text, "%ld", j->die_step);
    char self[4096]; /* its name: what the link itself leads to may be a debugger */
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(n > 0);
    self[n] = '\0';
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid > 0) return pid;
    setenv("OMP_WAIT_POLICY", "passive", 1);
    execl(self, "test_train_resume", "--train", j->c->folder, j->recipe, j->out, j->keys, threads,
          stop_text, die_text, step_text, j->init ? j->init : "", (char *)NULL);
    _exit(127);
}

/* The exit status, or -signal. */
static int ended(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int run(job j) {
    return ended(start(&j));
}

static void wait_seconds(double seconds) {
    struct timespec t = {(time_t)seconds, (long)(1e9 * (seconds - floor(seconds)))};
    nanosleep(&t, NULL);
}

static const char everything[] =
    "steps=30 checkpoint_steps=4 accumulate=2 ema=0.9 dropout=0.1 "
    "drop_path=0.1 augment.jitter=0.2 augment.flip=0.5 augment.randaugment=7 "
    "vision_depth=2";

/* Kills the run several times, at random moments. Returns how often it died. */
static int run_with_kills(job j) {
    static const int steps[] = {1, 3, 5, 8, 11, 16, 20, 26};
    int kills = 0;
    for (size_t i = 0; i < VLP_COUNT(steps); i++) {
        j.die_step = steps[i];
        int status = run(j);
        if (status == DONE) return kills;
        assert_int_equal(status, -SIGKILL);
        kills++;
    }
    j.die_step = 0;
    assert_int_equal(run(j), DONE);
    return kills;
}

static void same_run(const corpus *c, const char *a, const char *b) {
    char left[600], right[600];
    snprintf(left, sizeof left, "%s/model.safetensors", a);
    snprintf(right, sizeof right, "%s/model.safetensors", b);
    fixture_same_file(c, left, right);
    fixture_same_metrics(c, a, b);
}

static void killed(const char *recipe, const char *more) {
    corpus c;
    char keys[600];
    fixture_open(&c, PICTURES);
    snprintf(keys, sizeof keys, "%s %s", everything, more);
    job j = {.c = &c, .recipe = recipe, .out = "whole", .keys = keys};
    assert_int_equal(run(j), DONE);
    j.out = "pieces";
    assert_true(run_with_kills(j) > 1);
    same_run(&c, "whole", "pieces");
    corpus_close(&c);
}

static void test_train_resume__killed_runs_of_vlp_repeat_bit_for_bit(void **state) {
    (void)state;
    killed("vlp", "");
}

static void test_train_resume__killed_runs_of_clip_repeat_bit_for_bit(void **state) {
    (void)state;
    killed("clip", "");
}

/* The ramp is under way at every kill: a run is eleven passes over the data. */
static void test_train_resume__killed_runs_of_albef_repeat_bit_for_bit(void **state) {
    (void)state;
    killed("albef", "momentum.queue=10 momentum.ramp=12");
}

static void test_train_resume__sigterm_saves_and_resumes(void **state) {
    (void)state;
    corpus c;
    char path[700];
    fixture_open(&c, PICTURES);
    job j = {.c = &c, .recipe = "vlp", .out = "whole", .keys = "steps=40 eval_every=9"};
    assert_int_equal(run(j), DONE);
    j.out = "stopped";
    pid_t pid = start(&j);
    snprintf(path, sizeof path, "%s/stopped/metrics.jsonl", c.folder);
    for (int i = 0; i < 20000 && !vlp_path_exists(path); i++) wait_seconds(1e-3);
    kill(pid, SIGTERM);
    assert_int_equal(ended(pid), STOPPED);
    snprintf(path, sizeof path, "%s/stopped/state.json", c.folder);
    assert_true(vlp_path_exists(path));
    assert_int_equal(run(j), DONE);
    same_run(&c, "whole", "stopped");
    corpus_close(&c);
}

/* Nothing of an interrupted checkpoint stays behind. */
static void only_one_state(const corpus *c, const char *out) {
    char command[1200];
    snprintf(command, sizeof command,
             "test \"$(ls -d '%s/%s'/state-* | wc -l)\" = 1 && "
             "test -z \"$(find '%s/%s' -name '*.tmp')\"",
             c->folder, out, c->folder, out);
    if (system(command) != 0) fail_msg("%s: leftovers of a cut off checkpoint", out);
}

/* Cut off after every rename, sync, removal and new folder, in a run that starts from
 * another model: before its first checkpoint too, it must not go on from random weights. */
static void test_train_resume__cut_off_at_any_file_resumes(void **state) {
    (void)state;
    corpus c;
    char command[700];
    fixture_open(&c, 10);
    job j = {.c = &c, .recipe = "clip", .out = "start", .keys = "steps=2 seed=3"};
    assert_int_equal(run(j), DONE);
    j.init = "start";
    j.out = "whole";
    j.keys = "steps=4 checkpoint_steps=2 ema=0.5 eval_every=3";
    assert_int_equal(run(j), DONE);
    int cuts = 0;
    for (long at = 1;; at++) {
        j.out = "cut";
        j.die_at = at;
        int status = run(j);
        j.die_at = 0;
        if (status == DONE) break;
        assert_int_equal(status, -SIGKILL);
        if (run(j) != DONE) fail_msg("cut off after change %ld", at);
        same_run(&c, "whole", "cut");
        only_one_state(&c, "cut");
        snprintf(command, sizeof command, "rm -rf '%s/cut'", c.folder);
        assert_int_equal(system(command), 0);
        cuts++;
    }
    assert_true(cuts > 40);
    corpus_close(&c);
}

static double loss_of(const char *line) {
    const char *loss = strstr(line, "\"loss\":");
    assert_non_null(loss);
    return atof(loss + 7);
}

static void test_train_resume__another_thread_count_agrees_within_rounding(void **state) {
    (void)state;
    corpus c;
    vlp_buf text[2] = {{0}, {0}};
    fixture_open(&c, PICTURES);
    job j = {.c = &c, .recipe = "vlp", .out = "two", .keys = "steps=8 dropout=0.1 eval_every=100"};
    assert_int_equal(run(j), DONE);
    j.out = "mixed";
    j.stop_at = 3;
    assert_int_equal(run(j), STOPPED);
    j.stop_at = 0;
    j.threads = 1;
    assert_int_equal(run(j), DONE);
    fixture_read(&c, "two/metrics.jsonl", &text[0]);
    fixture_read(&c, "mixed/metrics.jsonl", &text[1]);
    char *save[2], *line[2];
    for (int i = 0; i < 2; i++) line[i] = strtok_r(text[i].data, "\n", &save[i]);
    int lines = 0;
    for (; line[0] && line[1]; lines++) {
        double a = loss_of(line[0]), b = loss_of(line[1]);
        if (fabs(a - b) > 1e-4 * fabs(a)) fail_msg("line %d: %.9g and %.9g", lines, a, b);
        for (int i = 0; i < 2; i++) line[i] = strtok_r(NULL, "\n", &save[i]);
    }
    assert_int_equal(lines, 8);
    for (int i = 0; i < 2; i++) vlp_buf_free(&text[i]);
    corpus_close(&c);
}

int main(int argc, char **argv) {
    if (argc == 11 && strcmp(argv[1], "--train") == 0) return child(argv + 2);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_train_resume__killed_runs_of_vlp_repeat_bit_for_bit),
        cmocka_unit_test(test_train_resume__killed_runs_of_clip_repeat_bit_for_bit),
        cmocka_unit_test(test_train_resume__killed_runs_of_albef_repeat_bit_for_bit),
        cmocka_unit_test(test_train_resume__sigterm_saves_and_resumes),
        cmocka_unit_test(test_train_resume__cut_off_at_any_file_resumes),
        cmocka_unit_test(test_train_resume__another_thread_count_agrees_within_rounding),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
