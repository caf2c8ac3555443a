/*
 * sample_kernel: n states, one thread each, blocks of 128 threads.
 *   in  q: 3
 *   in  x_t1: 2
 *   out double_: 2 x 4
 *   out angle: scalar
 *   operations per state: 7 add, 1 atan2, 1 compare, 1 div, 5 mul, 1 neg, 1 select, 3 sincos, 1 sqrt
 *
 * Strides count elements: _x_step0 of the batch, then of x itself, row-major, or
 * _x_stride from each element to the next.
 * Where there is no stride but the batch's, the elements of a state lie side by side.
 */
#define FMA(a, b, c) fmaf(a, b, c)

__device__ __forceinline__ void _sincos(float x, float *sine, float *cosine)
{
    if (!(fabsf(x) < 3.145728e+06f)) x = nanf("");
    const float shifted = fmaf(x, 0.63661975f, 1.2582912e+07f), turns = shifted - 1.2582912e+07f;
    const int quadrant = __float_as_int(shifted);
    float r = fmaf(turns, (-1.5707963f), x);
    r = fmaf(turns, (-7.5497894e-08f), r);
    r = fmaf(turns, (-5.390303e-15f), r);
    const float z = r * r;
    const float s = fmaf(r * z, fmaf(fmaf((-0.00019517558f), z, 0.008332181f), z, (-0.16666655f)), r);
    const float half = fmaf((-0.5f), z, 1.0f);
    const float c = fmaf(z * z, fmaf(fmaf(2.4439449e-05f, z, (-0.0013887378f)), z, 0.041666646f), half);
    const float a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = __int_as_float(__float_as_int(a) ^ (quadrant << 30 & 0x80000000));
    *cosine = __int_as_float(__float_as_int(b) ^ ((quadrant + 1) << 30 & 0x80000000));
}

__device__ __forceinline__ float _over(float a, float b)
{
    const float r = __fdividef(1.0f, b), q = a * r, better = fmaf(fmaf(-b, q, a), r, q);
    return better == better ? better : q;  // b is zero or infinite, or a infinite
}

__device__ __forceinline__ float *_apart(float *x)
{
    size_t place = __cvta_generic_to_global(x);
    asm("" : "+l"(place));
    return (float *)__cvta_global_to_generic(place);
}

template <int size> __device__ __forceinline__ void _stage(float *tile, const float *x, long long step, int lane, int rows)
{
    const int pitch = size % 4 ? size : size + 1;
    if (rows == 32 && step == size) {  // one piece of memory
        #pragma unroll
        for (int k = 0; k < size; ++k) {
            const int at = k * 32 + lane;
            tile[pitch == size ? at : at + at / size] = x[at];
        }
        return;
    }
    #pragma unroll 8
    for (int k = 0; k < size; ++k) {
        const int at = k * 32 + lane, row = at / size, element = at % size;
        tile[row * pitch + element] = x[(row < rows ? row : rows - 1) * step + element];
    }
}

template <int size> __device__ __forceinline__ void _deliver(const float *tile, float *x, long long step, int lane, int rows)
{
    const int pitch = size % 4 ? size : size + 1;
    if (rows == 32 && step == size) {  // one piece of memory
        #pragma unroll
        for (int k = 0; k < size; ++k) {
            const int at = k * 32 + lane;
            x[at] = tile[pitch == size ? at : at + at / size];
        }
        return;
    }
    #pragma unroll 8
    for (int k = 0; k < size; ++k) {
        const int at = k * 32 + lane, row = at / size, element = at % size;
        if (row < rows) x[row * step + element] = tile[row * pitch + element];
    }
}

extern "C" __global__ void sample_kernel(
    const long long n,
    const float *__restrict__ q,
    const float *__restrict__ x_t1,
    float *__restrict__ double_,
    float *__restrict__ angle,
    const long long _q_step0,
    const long long _q_stride0,
    const long long _x_t1_step0,
    const long long _x_t1_stride0,
    const long long _double__step0,
    const long long _angle_step0)
{
    const int _lane = threadIdx.x % 32;
    const long long _first = (long long)blockIdx.x * blockDim.x + threadIdx.x - _lane;
    if (_first >= n) return;
    const int _rows = n - _first < 32 ? (int)(n - _first) : 32;
    const long long i = _first + (_lane < _rows ? _lane : _rows - 1);
    const long long _i0 = i;
    (void)_i0; (void)_rows;
    __shared__ float _tiles[1152];
    float *const _tile = _tiles + threadIdx.x / 32 * 288;
    const float *const _q = q + _i0 * _q_step0;
    const float *const _x_t1 = x_t1 + _i0 * _x_t1_step0;
    float *const _double_ = _tile + 0 + _lane * 9;
    float *const _angle = angle + _i0 * _angle_step0;

    const float q_0 = _q[0];
    const float q_1 = _q[1 * _q_stride0];
    const float q_2 = _q[2 * _q_stride0];
    const float x_t1_0 = _x_t1[0];
    const float x_t1_1 = _x_t1[1 * _x_t1_stride0];
    _double_[6] = q_2;

    /* link 1, base_to_tip */
    float t0, t1; _sincos(q_0, &t0, &t1);
    float t2, t2_unused; _sincos(q_1, &t2, &t2_unused);
    float t3_unused, t3; _sincos(q_2, &t3_unused, &t3);

    /* link 2, tip_to_base * / */
    const float t4 = FMA(t0, x_t1_0, t1);
    _double_[0] = t4;
    const float t5 = FMA(t0, x_t1_1, -0.1f);
    _double_[1] = t5;
    const float t6 = FMA(-t2, t3, (-0.6666667f));
    _double_[2] = t6;
    const int t7 = q_1 < q_2;
    const float t8 = q_1 - q_2;
    const float t9 = t7 ? t8 : 1e-30f;
    _double_[3] = t9;
    const float t10 = t0 + 3.0f;
    const float t11 = x_t1_0 * x_t1_0;
    const float t12 = t11 + 1.0f;
    const float t13 = _over(t10, t12);
    _double_[4] = t13;
    const float t14 = x_t1_1 * x_t1_1;
    const float t15 = t14 + 1e+22f;
    const float t16 = sqrtf(t15);
    const float t17 = -t16;
    _double_[5] = t17;
    _double_[7] = (-0.1f);
    const float t18 = atan2f(t6, t1);
    _apart(_angle)[0] = t18;

    /* results */
    __syncwarp();
    _deliver<8>(_tile + 0, double_ + _first * _double__step0, _double__step0, _lane, _rows);
}
