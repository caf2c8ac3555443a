/*
 * sample_kernel: n states, one thread each; element e of state i of an array x is x[e * n + i].
 *   in  q: 3
 *   in  x_t1: 2
 *   out double_: 2 x 4
 *   out angle: scalar
 *   operations per state: 7 add, 1 atan2, 1 compare, 1 div, 5 mul, 1 neg, 1 select, 3 sincos, 1 sqrt
 */
#define FMA(a, b, c) fmaf(a, b, c)

extern "C" __global__ void sample_kernel(
    const size_t n,
    const float *__restrict__ q,
    const float *__restrict__ x_t1,
    float *__restrict__ double_,
    float *__restrict__ angle)
{
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;

    const float q_0 = q[0 * n + i];
    const float q_1 = q[1 * n + i];
    const float q_2 = q[2 * n + i];
    const float x_t1_0 = x_t1[0 * n + i];
    const float x_t1_1 = x_t1[1 * n + i];

    /* link 1, base_to_tip */
    float t0, t1; sincosf(q_0, &t0, &t1);
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
    double_[0 * n + i] = t4;
    double_[1 * n + i] = t5;
    double_[2 * n + i] = t6;
    double_[3 * n + i] = t9;
    double_[4 * n + i] = t13;
    double_[5 * n + i] = t17;
    double_[6 * n + i] = q_2;
    double_[7 * n + i] = (-0.1f);
    angle[0 * n + i] = t18;
}
