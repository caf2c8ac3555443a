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
#define FMA(a, b, c) fma(a, b, c)

__constant__ double _constants[20] = {
    0.1, 0.6666666666666666, 1e-30, 1e+22, 1.5707963267948966, 6.123233995736765e-17, 1.082856673921914e-32, 0.6366197723675814,
    1.58969099521155e-10, 2.5050760253406863e-08, 2.7557313707070068e-06, 0.0001984126982985795, 0.00833333333332249, 0.16666666666666632, 1.1359647557788195e-11, 2.087572321298175e-09,
    2.7557314351390663e-07, 2.480158728947673e-05, 0.001388888888887411, 0.0416666666666666,
};
__device__ __forceinline__ void _sincos(double x, double *sine, double *cosine)
{
    if (!(fabs(x) < 1688849860263936.0)) x = nan("");
    const double shifted = fma(x, _constants[7], 6755399441055744.0), turns = shifted - 6755399441055744.0;
    const int quadrant = __double2loint(shifted);
    double r = fma(turns, (-_constants[4]), x);
    r = fma(turns, (-_constants[5]), r);
    r = fma(turns, (-_constants[6]), r);
    const double z = r * r;
    const double s = fma(r * z, fma(fma(fma(fma(fma(_constants[8], z, (-_constants[9])), z, _constants[10]), z, (-_constants[11])), z, _constants[12]), z, (-_constants[13])), r);
    const double half = fma((-0.5), z, 1.0);
    const double c = fma(z * z, fma(fma(fma(fma(fma((-_constants[14]), z, _constants[15]), z, (-_constants[16])), z, _constants[17]), z, (-_constants[18])), z, _constants[19]), half);
    const double a = quadrant & 1 ? c : s, b = quadrant & 1 ? s : c;
    *sine = __hiloint2double(__double2hiint(a) ^ (quadrant << 30 & 0x80000000), __double2loint(a));
    *cosine = __hiloint2double(__double2hiint(b) ^ ((quadrant + 1) << 30 & 0x80000000), __double2loint(b));
}

__device__ __forceinline__ double _over(double a, double b)
{
    double guess;  // 20 bits of 1 / b
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(guess) : "d"(b));
    const double e = fma(-b, guess, 1.0), s = fma(guess, fma(e, e, e), guess);
    const double r = fma(s, fma(-b, s, 1.0), s), q = a * r, better = fma(fma(-b, q, a), r, q);
    return better == better ? better : a * guess;  // b is zero or infinite, or a infinite
}

__device__ __forceinline__ double *_apart(double *x)
{
    size_t place = __cvta_generic_to_global(x);
    asm("" : "+l"(place));
    return (double *)__cvta_global_to_generic(place);
}

template <int size> __device__ __forceinline__ void _stage(double *tile, const double *x, long long step, int lane, int rows)
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

template <int size> __device__ __forceinline__ void _deliver(const double *tile, double *x, long long step, int lane, int rows)
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
    const double *__restrict__ q,
    const double *__restrict__ x_t1,
    double *__restrict__ double_,
    double *__restrict__ angle,
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
    __shared__ double _tiles[1152];
    double *const _tile = _tiles + threadIdx.x / 32 * 288;
    const double *const _q = q + _i0 * _q_step0;
    const double *const _x_t1 = x_t1 + _i0 * _x_t1_step0;
    double *const _double_ = _tile + 0 + _lane * 9;
    double *const _angle = angle + _i0 * _angle_step0;

    const double q_0 = _q[0];
    const double q_1 = _q[1 * _q_stride0];
    const double q_2 = _q[2 * _q_stride0];
    const double x_t1_0 = _x_t1[0];
    const double x_t1_1 = _x_t1[1 * _x_t1_stride0];
    _double_[6] = q_2;

    /* link 1, base_to_tip */
    double t0, t1; _sincos(q_0, &t0, &t1);
    double t2, t2_unused; _sincos(q_1, &t2, &t2_unused);
    double t3_unused, t3; _sincos(q_2, &t3_unused, &t3);

    /* link 2, tip_to_base * / */
    const double t4 = FMA(t0, x_t1_0, t1);
    _double_[0] = t4;
    const double t5 = FMA(t0, x_t1_1, -_constants[0]);
    _double_[1] = t5;
    const double t6 = FMA(-t2, t3, (-_constants[1]));
    _double_[2] = t6;
    const int t7 = q_1 < q_2;
    const double t8 = q_1 - q_2;
    const double t9 = t7 ? t8 : _constants[2];
    _double_[3] = t9;
    const double t10 = t0 + 3.0;
    const double t11 = x_t1_0 * x_t1_0;
    const double t12 = t11 + 1.0;
    const double t13 = _over(t10, t12);
    _double_[4] = t13;
    const double t14 = x_t1_1 * x_t1_1;
    const double t15 = t14 + _constants[3];
    const double t16 = sqrt(t15);
    const double t17 = -t16;
    _double_[5] = t17;
    _double_[7] = (-_constants[0]);
    const double t18 = atan2(t6, t1);
    _apart(_angle)[0] = t18;

    /* results */
    __syncwarp();
    _deliver<8>(_tile + 0, double_ + _first * _double__step0, _double__step0, _lane, _rows);
}
