/** Delays in milliseconds, in an order without a pattern; the same as for every other rival. */
final class Delays {
    private static final long HOUR = 3_600_000;

    /** Knuth's multiplicative hash, on 64 bits. */
    private static long scatter(long i, long range) {
        return Long.remainderUnsigned(i * 2_654_435_761L, range);
    }

    /** From 1 to 60 s: what servers use. */
    static long usual(long i) {
        return 1_000 + scatter(i, 59_000);
    }

    /** The longest of the usual ones. */
    static final long PUSHED_BACK = 60_000;

    /** From 5 to 500 ms, in microseconds. */
    static long shortMicros(long i) {
        return 5_000 + scatter(i, 495_000);
    }

    /** The i-th of count that fall evenly between one and two hours from now. */
    static long far(long i, long count) {
        return HOUR + HOUR * i / count;
    }

    /** Anywhere among those of {@link #far}. */
    static long amongFar(long i) {
        return HOUR + scatter(i, HOUR);
    }

    /** The i-th of count that fall evenly into one second, in nanoseconds. */
    static long withinSecondNanos(long i, long count) {
        // A prime that divides no power of ten makes this a permutation.
        return Long.remainderUnsigned(i * 2_654_435_761L, count) * (1_000_000_000 / count);
    }
}
