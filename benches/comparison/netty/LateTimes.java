import io.netty.util.TimerTask;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;

/** How late each of a number of timeouts ran, by {@code System.nanoTime}. */
final class LateTimes {
    private final long[] nanos;
    private final CountDownLatch left;

    LateTimes(int count) {
        nanos = new long[count];
        left = new CountDownLatch(count);
    }

    int count() {
        return nanos.length;
    }

    /** The deadline has to be computed before the timeout is handed in, or early runs look late. */
    TimerTask task(int slot, long deadline) {
        return timeout -> {
            nanos[slot] = System.nanoTime() - deadline;
            left.countDown();
        };
    }

    void awaitAll() throws InterruptedException {
        left.await();
        Arrays.sort(nanos);
    }

    /** By nearest rank; after {@link #awaitAll}. */
    double quantileMicros(double quantile) {
        int rank = (int) Math.ceil(quantile * nanos.length);
        return nanos[Math.max(rank, 1) - 1] / 1e3;
    }

    long early() {
        return Arrays.stream(nanos).filter(late -> late < 0).count();
    }
}
