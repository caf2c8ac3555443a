/*
 * sample_kernel: n states, one thread each; element e of state i of an array x is x[e * n + i].
 *   in  q: 3
 *   in  x_t1: 2
 *   out double_: 2 x 4
 *   out angle: scalar
 *   operations per state: 7 add, 1 atan2, 1 compare, 1 div, 5 mul, 1 neg, 1 select, 3 sincos, 1 sqrt
 */
#define FMA(a, b, c) fma(a, b, c)

extern "C" __global__ void sample_kernel(
    const size_t n,
    const double *__restrict__ q,
    const double *__restrict__ x_t1,
    double *__restrict__ double_,
    double *__restrict__ angle)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    const double q_0 = q[0 * n + i];
    const double q_1 = q[1 * n + i];
    const double q_2 = q[2 * n + i];
    const double x_t1_0 = x_t1[0 * n + i];
    const double x_t1_1 = x_t1[1 * n + i];

    /* link 1, base_to_tip */
    double t0, t1; sincos(q_0, &t0, &t1);
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
    double_[0 * n + i] = t4;
    double_[1 * n + i] = t5;
    double_[2 * n + i] = t6;
    double_[3 * n + i] = t9;
    double_[4 * n + i] = t13;
    double_[5 * n + i] = t17;
    double_[6 * n + i] = q_2;
    double_[7 * n + i] = (-0.1);
    angle[0 * n + i] = t18;
}
