import io.netty.util.TimerTask;

/** Tasks that capture so many bytes and do nothing. */
final class Captures {
    private static long sink;

    /** Without captures one object for all timeouts; otherwise each has its own. */
    static TimerTask task(int bytes, long i) {
        return switch (bytes) {
            case 0 -> Wheel.PROBE;
            case 16 -> two(i, i + 1);
            case 24 -> three(i, i + 1, i + 2);
            default -> throw new IllegalArgumentException("captures=0, 16 or 24, not " + bytes);
        };
    }

    private static TimerTask two(long a, long b) {
        return timeout -> sink += a + b;
    }

    private static TimerTask three(long a, long b, long c) {
        return timeout -> sink += a + b + c;
    }
}
