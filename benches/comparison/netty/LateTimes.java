import io.netty.util.TimerTask;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** How late each of a number of timeouts ran, by {@code System.nanoTime}; noted by one thread. */
final class LateTimes {
    private final long[] nanos;
    private final CountDownLatch left;
    private int noted;

    LateTimes(int count) {
        nanos = new long[count];
        left = new CountDownLatch(count);
    }

    /** The deadline has to be computed before the timeout is handed in, or early runs look late. */
    TimerTask task(long deadline) {
        return timeout -> note(System.nanoTime() - deadline);
    }

    void note(long late) {
        nanos[noted++] = late;
        left.countDown();
    }

    /** Until all are noted; {@code false} if that takes longer. */
    boolean await(long seconds) throws InterruptedException {
        return left.await(seconds, TimeUnit.SECONDS);
    }

    /** By nearest rank, in nanoseconds. */
    double quantile(double quantile) {
        Arrays.sort(nanos, 0, noted);
        int rank = (int) Math.ceil(quantile * noted);
        return nanos[Math.max(rank, 1) - 1];
    }

    long early() {
        return Arrays.stream(nanos, 0, noted).filter(late -> late < 0).count();
    }
}
