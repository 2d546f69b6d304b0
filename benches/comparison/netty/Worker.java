import io.netty.util.Timeout;
import java.util.concurrent.atomic.AtomicInteger;

/** One thread's use of a timer, on the hot paths and in floods. */
final class Worker {
    private static final int ENDED = 100;

    private final Wheel wheel;
    private final String kind;
    private final int captures;
    /** A ring. */
    private final Timeout[] live;
    private int oldest;
    private long scheduled;

    /** Workers begin at different places of the same sequence of delays. */
    Worker(Wheel wheel, String kind, int captures, int window, int thread) throws Exception {
        this.wheel = wheel;
        this.kind = kind;
        this.captures = captures;
        live = new Timeout[kind.equals("cancel_ended") ? ENDED : window];
        scheduled = (long) thread * live.length;
        switch (kind) {
            case "rolling", "reschedule" -> schedule(window);
            case "cancel_ended" -> awaitEnded();
            default -> {}
        }
    }

    private void awaitEnded() throws InterruptedException {
        AtomicInteger runs = new AtomicInteger();
        for (int i = 0; i < ENDED; i++) {
            live[i] = wheel.schedule(timeout -> runs.getAndIncrement(), 2);
        }
        while (runs.get() < ENDED) {
            Thread.sleep(1);
        }
    }

    /** A method for each kind, so that the JIT compiles it alone. */
    void batch(int operations) {
        switch (kind) {
            case "schedule" -> schedule(operations);
            case "schedule_cancel" -> scheduleAndCancel(operations);
            case "rolling" -> roll(operations);
            case "reschedule" -> pushBack(operations);
            case "cancel_ended" -> cancelEnded(operations);
            default -> throw new IllegalArgumentException("no work " + kind);
        }
    }

    private void schedule(int operations) {
        for (int i = 0; i < operations; i++) {
            schedule(Delays.usual(scheduled));
        }
    }

    private void scheduleAndCancel(int operations) {
        long first = scheduled;
        for (int i = 0; i < operations; i++) {
            wheel.schedule(Captures.task(captures, i), Delays.usual(first + i)).cancel();
        }
        scheduled = first + operations;
    }

    private void roll(int operations) {
        for (int i = 0; i < operations; i++) {
            live[oldest].cancel();
            schedule(Delays.usual(scheduled));
        }
    }

    /** Netty has none: cancel, and schedule again. */
    private void pushBack(int operations) {
        for (int i = 0; i < operations; i++) {
            live[oldest].cancel();
            schedule(Delays.PUSHED_BACK);
        }
    }

    private void cancelEnded(int operations) {
        for (int i = 0; i < operations; i++) {
            live[i % ENDED].cancel();
        }
    }

    private void schedule(long delay) {
        live[oldest] = wheel.schedule(Captures.task(captures, scheduled++), delay);
        oldest = oldest + 1 == live.length ? 0 : oldest + 1;
    }
}
