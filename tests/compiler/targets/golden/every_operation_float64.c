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

#ifdef FP_FAST_FMA
#define FMA(a, b, c) fma(a, b, c)
#else
#define FMA(a, b, c) ((a) * (b) + (c))
#endif

void sample_kernel(const double *restrict q, const double *restrict x_t1, double *restrict double_, double *restrict angle)
{
    const double q_0 = q[0];
    const double q_1 = q[1];
    const double q_2 = q[2];
    const double x_t1_0 = x_t1[0];
    const double x_t1_1 = x_t1[1];

    /* link 1, base_to_tip */
    const double t0 = sin(q_0);
    const double t1 = cos(q_0);
    const double t2 = sin(q_1);
    const double t3 = cos(q_2);

    /* link 2, tip_to_base * / */
    const double t4 = FMA(t0, x_t1_0, t1);
    const double t5 = FMA(t0, x_t1_1, -0.1);
    const double t6 = FMA(-t2, t3, (-0.6666666666666666));
    const int t7 = q_1 < q_2;
    const double t8 = q_1 - q_2;
    const double t9 = t7 ? t8 : 1e-30;
    const double t10 = t0 + 3.0;
    const double t11 = x_t1_0 * x_t1_0;
    const double t12 = t11 + 1.0;
    const double t13 = t10 / t12;
    const double t14 = x_t1_1 * x_t1_1;
    const double t15 = t14 + 1e+22;
    const double t16 = sqrt(t15);
    const double t17 = -t16;
    const double t18 = atan2(t6, t1);

    /* results */
    double_[0] = t4;
    double_[1] = t5;
    double_[2] = t6;
    double_[3] = t9;
    double_[4] = t13;
    double_[5] = t17;
    double_[6] = q_2;
    double_[7] = (-0.1);
    angle[0] = t18;
}

void sample_kernel_batch(size_t n, const double *restrict q, const double *restrict x_t1, double *restrict double_, double *restrict angle)
{
    for (size_t i = 0; i < n; ++i)
        sample_kernel(q + i * 3, x_t1 + i * 2, double_ + i * 8, angle + i * 1);
}
