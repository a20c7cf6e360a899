"""Fingerprints: whether a user's array still is what it was when an operation used it."""

cimport cython

import numpy as np

cimport numpy as cnp

cnp.import_array()

cdef extern from *:
    """
    #include <stdint.h>
    #include <string.h>
    #if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__linux__) && defined(__OPTIMIZE__)
    #define TF_CLONES __attribute__((target_clones("avx2", "default")))
    #else
    #define TF_CLONES
    #endif
    #define TF_LANES 32

    /* Each lane is a bijection of its state for every word, so a change of one word always shows.
       The rotation (a product modulo 2^64 - 1) and the product by 9 (modulo 2^64) do not commute,
       so that regular changes - all exponents plus one, say - do not cancel. */
    TF_CLONES static void tf_absorb(uint64_t *state, const unsigned char *p, size_t blocks) {
        uint64_t s[TF_LANES], w[TF_LANES];
        memcpy(s, state, sizeof s);
        for (size_t b = 0; b < blocks; b++, p += sizeof w) {
            memcpy(w, p, sizeof w);
            for (int j = 0; j < TF_LANES; j++) {
                uint64_t t = ((s[j] << 13) | (s[j] >> 51)) ^ w[j];
                s[j] = t + (t << 3);
            }
        }
        memcpy(state, s, sizeof s);
    }

    static uint64_t tf_mix(uint64_t a, uint64_t b) {
        a ^= b;
        a *= 0x9E3779B97F4A7C15ULL;
        a ^= a >> 29;
        a *= 0xBF58476D1CE4E5B9ULL;
        a ^= a >> 32;
        return a;
    }

    static void tf_start(uint64_t *state) {
        for (int j = 0; j < TF_LANES; j++) state[j] = tf_mix(j + 1, 0);
    }

    static void tf_bytes(uint64_t *state, const unsigned char *p, size_t n) {
        unsigned char tail[TF_LANES * 8];
        size_t blocks = n / sizeof tail, rest = n % sizeof tail;
        tf_absorb(state, p, blocks);
        if (rest) {
            memset(tail, 0, sizeof tail);
            memcpy(tail, p + blocks * sizeof tail, rest);
            tf_absorb(state, tail, 1);
        }
    }

    static uint64_t tf_end(const uint64_t *state, size_t n) {
        uint64_t h = n;
        for (int j = 0; j < TF_LANES; j++) h = tf_mix(h * 31 + j, state[j]);
        return h;
    }
    """
    ctypedef unsigned long long tf_word "uint64_t"
    enum: TF_LANES
    void tf_start(tf_word *state) noexcept nogil
    void tf_bytes(tf_word *state, const unsigned char *p, size_t n) noexcept nogil
    tf_word tf_end(const tf_word *state, size_t n) noexcept nogil

cdef enum:
    # Below this many bytes a thread switch costs more than it gives.
    NOGIL_BYTES = 100000


@cython.final
@cython.auto_pickle(False)
cdef class Fingerprint:
    """Fingerprints of arrays; one instance, ``fingerprint``."""

    cpdef object of(self, object x):
        """Return a hash of all elements, bit for bit, in the array's order.

        Parameters
        ----------
        x : numpy.ndarray
            Of any dtype without Python objects, any shape and strides.

        Returns
        -------
        int
            64 bits.  Arrays of other contents have another one, but for a chance of about 2**-64;
            a change of one element always shows.

        Raises
        ------
        TypeError
            ``x`` is no array, or holds Python objects.
        """
        cdef cnp.ndarray a
        cdef tf_word state[TF_LANES]
        cdef const unsigned char *p
        cdef size_t n
        if not cnp.PyArray_Check(x):
            raise TypeError(f"a fingerprint is taken of a numpy.ndarray, not of a {type(x).__name__}")
        if x.dtype.hasobject:
            raise TypeError(f"an array of dtype {x.dtype} holds Python objects and has no fingerprint; "
                            "use a numeric dtype")
        a = x if x.flags.forc else np.ascontiguousarray(x)
        p = <const unsigned char *>cnp.PyArray_DATA(a)
        n = <size_t>cnp.PyArray_NBYTES(a)
        tf_start(state)
        if n < NOGIL_BYTES:
            tf_bytes(state, p, n)
        else:
            with nogil:
                tf_bytes(state, p, n)
        return tf_end(state, n)

    cpdef bint same(self, object x, object mark) except -1:
        """Whether ``x`` still has the fingerprint ``mark``."""
        return self.of(x) == mark


fingerprint = Fingerprint()
