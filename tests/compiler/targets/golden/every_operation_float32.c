/*
 * sample_kernel: one state; sample_kernel_batch: n states in contiguous rows.
 *   in  q: 3
 *   in  x_t1: 2
 *   out double_: 2 x 4
 *   out angle: scalar
 *   operations per state: 7 add, 1 atan2, 1 compare, 1 div, 5 mul, 1 neg, 1 select, 3 sincos, 1 sqrt
 */
#include <math.h>
#include <stddef.h>

#ifdef FP_FAST_FMAF
#define FMA(a, b, c) fmaf(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

void sample_kernel(const float *restrict q, const float *restrict x_t1, float *restrict double_, float *restrict angle)
{
    const float q_0 = q[0];
    const float q_1 = q[1];
    const float q_2 = q[2];
    const float x_t1_0 = x_t1[0];
    const float x_t1_1 = x_t1[1];

    /* link 1, base_to_tip */
    const float t0 = sinf(q_0);
    const float t1 = cosf(q_0);
    const float t2 = sinf(q_1);
    const float t3 = cosf(q_2);

    /* link 2, tip_to_base * / */
    const float t4 = FMA(t0, x_t1_0, t1);
    const float t5 = FMA(t0, x_t1_1, -0.1f);
    const float t6 = FMA(-t2, t3, (-0.6666667f));
    const int t7 = q_1 < q_2;
    const float t8 = q_1 - q_2;
    const float t9 = t7 ? t8 : 1e-30f;
    const float t10 = t0 + 3.0f;
    const float t11 = x_t1_0 * x_t1_0;
    const float t12 = t11 + 1.0f;
    const float t13 = t10 / t12;
    const float t14 = x_t1_1 * x_t1_1;
    const float t15 = t14 + 1e+22f;
    const float t16 = sqrtf(t15);
    const float t17 = -t16;
    const float t18 = atan2f(t6, t1);

    /* results */
    double_[0] = t4;
    double_[1] = t5;
    double_[2] = t6;
    double_[3] = t9;
    double_[4] = t13;
    double_[5] = t17;
    double_[6] = q_2;
    double_[7] = (-0.1f);
    angle[0] = t18;
}

void sample_kernel_batch(size_t n, const float *restrict q, const float *restrict x_t1, float *restrict double_, float *restrict angle)
{
    for (size_t i = 0; i < n; ++i)
        sample_kernel(q + i * 3, x_t1 + i * 2, double_ + i * 8, angle + i * 1);
}
