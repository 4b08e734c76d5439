/*
 * vectors.c writes what a C compiler makes of the arithmetic of Portals' atomic operations where infinities, NaNs, zeros with
 * a sign and the ends of the range meet: the oracle of TestArithmeticAsC. The committed files are its output:
 *
 *     gcc -std=c11 -O0 -ffp-contract=off -o /tmp/vectors vectors.c -lm
 *     for t in float double longdouble; do /tmp/vectors $t > $t.txt; done
 *
 * made with gcc 12.2.0 on x86-64 (float and double in SSE, long double in the x87 format of 80 bits). Multiplication of complex
 * numbers is the compiler's own: that of C11 Annex G.5.1, which yields an infinity whenever a factor is one.
 *
 * Numbers are hexadecimal, most significant digit first, without padding; a result that is a NaN is "nan", whatever its bits.
 *
 *     value LETTER BITS        a letter for an operand
 *     real  A B SUM PROD MIN MAX LT LE EQ NE GE GT      MIN is B < A ? B : A, so A where the order is undefined, MAX alike;
 *                                                       the truth values are of "B op A": B is the operand, A the target
 *     complex ABCD RE IM EQ    (A + iB)(C + iD), and whether the two are equal
 *     random A B C D RE IM     the same of operands given by their bits
 */
#include <complex.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

static uint64_t state = 0x9e3779b97f4a7c15u;

static uint64_t draw(void)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

#define PROGRAM(NAME, T, BYTES, MANTISSA, EXPONENT)                                                                           \
    static void NAME##_put(T v)                                                                                               \
    {                                                                                                                         \
        unsigned char b[sizeof(T)];                                                                                           \
        if (v != v) {                                                                                                         \
            printf(" nan");                                                                                                   \
            return;                                                                                                           \
        }                                                                                                                     \
        memcpy(b, &v, sizeof v);                                                                                              \
        printf(" ");                                                                                                          \
        for (int i = BYTES - 1; i >= 0; i--)                                                                                  \
            printf("%02x", b[i]);                                                                                             \
    }                                                                                                                         \
    static T complex NAME##_make(T re, T im)                                                                                  \
    {                                                                                                                         \
        union {                                                                                                               \
            T part[2];                                                                                                        \
            T complex whole;                                                                                                  \
        } u = {{re, im}}; /* re + I*im would spoil infinities and zeros */                                                    \
        return u.whole;                                                                                                       \
    }                                                                                                                         \
    static void NAME##_product(T a, T b, T c, T d, int equal)                                                                 \
    {                                                                                                                         \
        volatile T complex x = NAME##_make(a, b), y = NAME##_make(c, d);                                                      \
        T complex z = x * y;                                                                                                  \
        NAME##_put(((T *)&z)[0]);                                                                                             \
        NAME##_put(((T *)&z)[1]);                                                                                             \
        if (equal)                                                                                                            \
            printf(" %d", x == y);                                                                                            \
        printf("\n");                                                                                                         \
    }                                                                                                                         \
    /* A number whose exponent lies at one of the ends of the range or in its middle. */                                      \
    static T NAME##_random(void)                                                                                              \
    {                                                                                                                         \
        uint64_t m = draw(), where = draw() % 8;                                                                              \
        unsigned char b[sizeof(T)] = {0};                                                                                     \
        uint64_t mantissa = m >> (64 - MANTISSA), bias = (1 << (EXPONENT - 1)) - 1, exponent;                                 \
        switch (where) {                                                                                                      \
        case 0: exponent = draw() % 3; break;                                                                                 \
        case 1: exponent = 2 * bias - draw() % 3; break;                                                                      \
        case 2: exponent = bias / 2 + draw() % 5; break;                                                                      \
        case 3: exponent = bias + bias / 2 - draw() % 5; break;                                                               \
        case 4: exponent = 2 * bias + 1; mantissa = draw() % 2 ? mantissa : 0; break;                                         \
        default: exponent = bias - 4 + draw() % 9;                                                                            \
        }                                                                                                                     \
        uint64_t sign = draw() & 1;                                                                                           \
        if (BYTES == 10) { /* the integer bit is there */                                                                     \
            mantissa = mantissa & ~(1ull << 63) | (uint64_t)(exponent != 0) << 63;                                            \
            if (exponent == 2 * bias + 1 && mantissa << 1)                                                                    \
                mantissa |= 1ull << 62;                                                                                       \
            exponent |= sign << EXPONENT;                                                                                     \
            memcpy(b, &mantissa, 8);                                                                                          \
            memcpy(b + 8, &exponent, 2);                                                                                      \
        } else {                                                                                                              \
            if (exponent == 2 * bias + 1 && mantissa)                                                                         \
                mantissa |= 1ull << (MANTISSA - 1);                                                                           \
            mantissa |= (sign << EXPONENT | exponent) << (MANTISSA % 64);                                                     \
            memcpy(b, &mantissa, BYTES);                                                                                      \
        }                                                                                                                     \
        T v;                                                                                                                  \
        memcpy(&v, b, sizeof v);                                                                                              \
        return v;                                                                                                             \
    }                                                                                                                         \
    static void NAME(const T *values, int reals, int complexes)                                                               \
    {                                                                                                                         \
        for (int i = 0; i < reals; i++) {                                                                                     \
            printf("value %c", 'a' + i);                                                                                      \
            NAME##_put(values[i]);                                                                                            \
            printf("\n");                                                                                                     \
        }                                                                                                                     \
        for (int i = 0; i < reals; i++)                                                                                       \
            for (int j = 0; j < reals; j++) {                                                                                 \
                volatile T a = values[i], b = values[j];                                                                      \
                printf("real %c %c", 'a' + i, 'a' + j);                                                                       \
                NAME##_put(a + b);                                                                                            \
                NAME##_put(a * b);                                                                                            \
                NAME##_put(b < a ? b : a);                                                                                    \
                NAME##_put(b > a ? b : a);                                                                                    \
                printf(" %d %d %d %d %d %d\n", b < a, b <= a, b == a, b != a, b >= a, b > a);                                 \
            }                                                                                                                 \
        for (int n = 0; n < complexes * complexes * complexes * complexes; n++) {                                             \
            int k[4], left = n;                                                                                               \
            for (int i = 3; i >= 0; i--, left /= complexes)                                                                   \
                k[i] = left % complexes;                                                                                      \
            printf("complex %c%c%c%c", 'a' + k[0], 'a' + k[1], 'a' + k[2], 'a' + k[3]);                                       \
            NAME##_product(values[k[0]], values[k[1]], values[k[2]], values[k[3]], 1);                                        \
        }                                                                                                                     \
        for (int n = 0; n < 400; n++) {                                                                                       \
            T v[4];                                                                                                           \
            printf("random");                                                                                                 \
            for (int i = 0; i < 4; i++) {                                                                                     \
                v[i] = NAME##_random();                                                                                       \
                NAME##_put(v[i]);                                                                                             \
            }                                                                                                                 \
            NAME##_product(v[0], v[1], v[2], v[3], 0);                                                                        \
        }                                                                                                                     \
    }

PROGRAM(single, float, 4, 23, 8)
PROGRAM(doubled, double, 8, 52, 11)
PROGRAM(extended, long double, 10, 64, 15)

#define INF __builtin_inf()
#define NAN_ __builtin_nan("")

int main(int argc, char **argv)
{
    /* The first six and the NaN in the place of the seventh go through all products of complex numbers. */
    const float f[] = {0.0f, -0.0f, 3.0f, -2.0f, INF, -INF, NAN_, 1.0f, -1.0f, 0.1f, 3.4028234e38f, -3.4028234e38f, 1.17549435e-38f, 1e-45f, -1e-45f};
    const double d[] = {0.0, -0.0, 3.0, -2.0, INF, -INF, NAN_, 1.0, -1.0, 0.1, 1.7976931348623157e308, -1.7976931348623157e308, 2.2250738585072014e-308, 5e-324, -5e-324};
    const long double l[] = {0.0L, -0.0L, 3.0L, -2.0L, INF, -INF, NAN_, 1.0L, -1.0L, 0.1L, 1.18973149535723176502e+4932L, -1.18973149535723176502e+4932L, 3.36210314311209350626e-4932L, 3.6e-4951L, -3.6e-4951L};
    const char *type = argc > 1 ? argv[1] : "";

    if (!strcmp(type, "float"))
        single(f, 15, 7);
    else if (!strcmp(type, "double"))
        doubled(d, 15, 7);
    else if (!strcmp(type, "longdouble"))
        extended(l, 15, 7);
    else
        return fprintf(stderr, "usage: vectors float|double|longdouble\n"), 2;
    return 0;
}
