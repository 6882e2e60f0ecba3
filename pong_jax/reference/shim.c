/* PufferLib's pong.h as a small C library: many environments in caller-owned buffers, whose states
   can be set and read, each with a random stream of its own.

   PONG_H names the header. PUFFER3 says that it is of PufferLib 3 or later: float actions, a
   continuous mode, and no log buffer. */
#include <stdint.h>
#include <stdlib.h>

/* The header calls rand() once for each serve; here every environment has its own rand_r stream. */
static unsigned int *stream;
#define rand() rand_r(stream)

#ifdef PUFFER3
typedef float Action;
#else
typedef int Action;
/* The C library has functions of its own called step and init. */
#define step pong_h_step
#define reset pong_h_reset
#define init pong_h_init
#define render pong_h_render
#endif

#include PONG_H

#ifdef PUFFER3
#define pong_h_step c_step
#define pong_h_reset c_reset
#define pong_h_init init
#endif

/* Lengths and speeds in the order of EnvParams, before max_score. */
enum { WIDTH, HEIGHT, PADDLE_W, PADDLE_H, BALL_W, BALL_H, SPEED, SERVE_X, SERVE_Y, SPIN, MAX_VY };
/* Columns of a state's floats and of its scores. */
enum { YL, YR, X, Y, VX, VY, FLOATS };
enum { LEFT, RIGHT, SCORES };

typedef struct {
    int count;
    Pong *envs;
    unsigned int *rng;
} Games;

Games *pong_open(int count, const float *lengths, int max_score, int frameskip, int continuous,
                 float *observations, Action *actions, float *rewards, unsigned char *terminals,
                 unsigned int *rng) {
    Games *games = calloc(1, sizeof(Games));
    games->count = count;
    games->rng = rng;
    games->envs = calloc(count, sizeof(Pong));
    for (int i = 0; i < count; i++) {
        games->envs[i] = (Pong){
            .observations = observations + 8 * i,
            .actions = actions + i,
            .rewards = rewards + i,
            .terminals = terminals + i,
            .width = lengths[WIDTH],
            .height = lengths[HEIGHT],
            .paddle_width = lengths[PADDLE_W],
            .paddle_height = lengths[PADDLE_H],
            .ball_width = lengths[BALL_W],
            .ball_height = lengths[BALL_H],
            .paddle_speed = lengths[SPEED],
            .ball_initial_speed_x = lengths[SERVE_X],
            .ball_initial_speed_y = lengths[SERVE_Y],
            .ball_speed_y_increment = lengths[SPIN],
            .ball_max_speed_y = lengths[MAX_VY],
            .max_score = max_score,
            .frameskip = frameskip,
#ifdef PUFFER3
            .continuous = continuous,
#else
            .log_buffer = allocate_logbuffer(1),
#endif
        };
        pong_h_init(&games->envs[i]);
    }
    (void)continuous;
    return games;
}

void pong_reset(Games *games) {
    for (int i = 0; i < games->count; i++) {
        stream = games->rng + i;
        pong_h_reset(&games->envs[i]);
    }
}

void pong_step(Games *games) {
    for (int i = 0; i < games->count; i++) {
        stream = games->rng + i;
        pong_h_step(&games->envs[i]);
    }
}

void pong_load(Games *games, const float *floats, const int16_t *scores) {
    for (int i = 0; i < games->count; i++, floats += FLOATS, scores += SCORES) {
        Pong *env = &games->envs[i];
        env->paddle_yl = floats[YL];
        env->paddle_yr = floats[YR];
        env->ball_x = floats[X];
        env->ball_y = floats[Y];
        env->ball_vx = floats[VX];
        env->ball_vy = floats[VY];
        env->score_l = scores[LEFT];
        env->score_r = scores[RIGHT];
        compute_observations(env); /* what the step before would have left in the buffer */
    }
}

void pong_dump(const Games *games, float *floats, int16_t *scores) {
    for (int i = 0; i < games->count; i++, floats += FLOATS, scores += SCORES) {
        const Pong *env = &games->envs[i];
        floats[YL] = env->paddle_yl;
        floats[YR] = env->paddle_yr;
        floats[X] = env->ball_x;
        floats[Y] = env->ball_y;
        floats[VX] = env->ball_vx;
        floats[VY] = env->ball_vy;
        scores[LEFT] = env->score_l;
        scores[RIGHT] = env->score_r;
    }
}

void pong_close(Games *games) {
#ifndef PUFFER3
    for (int i = 0; i < games->count; i++) free_logbuffer(games->envs[i].log_buffer);
#endif
    free(games->envs);
    free(games);
}
