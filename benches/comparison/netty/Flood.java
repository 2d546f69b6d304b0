import io.netty.util.Timeout;
import java.util.Arrays;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/** How late a heartbeat is beside threads that use the timer as fast as they can. */
final class Flood {
    private static final long PERIOD_NANOS = 5_000_000;
    /** Operations between two looks whether the flood is over. */
    private static final int BATCH = 100;
    /** Captured by each task. */
    private static final int BYTES = 16;

    private final CyclicBarrier ready;
    private volatile boolean over;

    private Flood(int threads) {
        ready = new CyclicBarrier(threads + 1);
    }

    /** {@code timer}: {@code same}, that of the heartbeat, or {@code other}, the control. */
    static void run(int threads, String kind, String timer) throws Exception {
        int millis = Sizes.of(Sizes.FLOOD_MILLIS);
        beside(threads, kind, timer, millis / 3); // warms up
        System.gc();
        Heartbeat heart = beside(threads, kind, timer, millis);
        Driver.print("p50_ms", heart.quantileMillis(0.5));
        Driver.print("p99_ms", heart.quantileMillis(0.99));
        Driver.print("max_ms", heart.quantileMillis(1));
        Driver.print("beats", heart.beats);
    }

    private static Heartbeat beside(int threads, String kind, String timer, int millis)
            throws Exception {
        try (Wheel wheel = new Wheel(1, TimeUnit.MILLISECONDS);
                Wheel other = new Wheel(1, TimeUnit.MILLISECONDS)) {
            Flood flood = new Flood(threads);
            Thread[] crew = new Thread[threads];
            for (int i = 0; i < threads; i++) {
                Runnable batch = batch(kind, timer.equals("same") ? wheel : other, i);
                crew[i] = new Thread(() -> flood.pour(batch));
                crew[i].start();
            }
            flood.ready.await();
            Heartbeat heart = Heartbeat.listen(wheel, millis);
            flood.over = true;
            for (Thread thread : crew) {
                thread.join();
            }
            return heart;
        }
    }

    private void pour(Runnable batch) {
        try {
            ready.await();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
        while (!over) {
            batch.run();
        }
    }

    private static Runnable batch(String kind, Wheel wheel, int thread) throws Exception {
        return switch (kind) {
            case "schedule_cancel" -> () -> scheduleAndCancel(wheel);
            case "rolling" -> new Window(wheel, thread, false);
            case "reschedule" -> new Window(wheel, thread, true);
            case "cancel_ended" -> cancelEnded(wheel);
            default -> throw new IllegalArgumentException("no flood " + kind);
        };
    }

    private static void scheduleAndCancel(Wheel wheel) {
        for (int i = 0; i < BATCH; i++) {
            wheel.schedule(Captures.task(BYTES, i), Delays.usual(i)).cancel();
        }
    }

    /** Netty has no reschedule: it cancels the oldest and schedules it again, as in a window. */
    private static final class Window implements Runnable {
        private final Wheel wheel;
        private final boolean pushesBack;
        private final Timeout[] live = new Timeout[Sizes.of(Sizes.FLOOD_WINDOW)];
        private long scheduled;

        Window(Wheel wheel, int thread, boolean pushesBack) {
            this.wheel = wheel;
            this.pushesBack = pushesBack;
            scheduled = (long) thread * live.length;
            for (int i = 0; i < live.length; i++) {
                replace();
            }
        }

        @Override
        public void run() {
            for (int i = 0; i < BATCH; i++) {
                replace();
            }
        }

        private void replace() {
            int place = (int) (scheduled++ % live.length);
            if (live[place] != null) {
                live[place].cancel();
            }
            long delay = pushesBack ? Delays.PUSHED_BACK : Delays.usual(scheduled);
            live[place] = wheel.schedule(Captures.task(BYTES, scheduled), delay);
        }
    }

    /** Cancels timeouts that have run, again and again. */
    private static Runnable cancelEnded(Wheel wheel) throws InterruptedException {
        AtomicInteger runs = new AtomicInteger();
        Timeout[] ended = new Timeout[BATCH];
        for (int i = 0; i < ended.length; i++) {
            ended[i] = wheel.schedule(timeout -> runs.getAndIncrement(), 2);
        }
        while (runs.get() < ended.length) {
            Thread.sleep(1);
        }
        return () -> {
            for (Timeout timeout : ended) {
                timeout.cancel();
            }
        };
    }

    /** A beat every 5 ms, the next one scheduled when the last has run. */
    private static final class Heartbeat {
        private final Thread thread = Thread.currentThread();
        private volatile long ranAt;
        private long[] late = new long[0];
        private int beats;

        static Heartbeat listen(Wheel wheel, int millis) {
            Heartbeat heart = new Heartbeat();
            long end = System.nanoTime() + millis * 1_000_000L;
            long[] late = new long[millis];
            int count = 0;
            while (System.nanoTime() < end) {
                heart.ranAt = 0;
                long due = System.nanoTime() + PERIOD_NANOS;
                wheel.scheduleNanos(timeout -> heart.beat(), PERIOD_NANOS);
                boolean ran = heart.await(end);
                heart.beats += ran ? 1 : 0;
                // A beat that is overdue at the end enters with its lateness by then.
                if (ran || end > due) {
                    late[count++] = (ran ? heart.ranAt : end) - due;
                }
            }
            heart.late = Arrays.copyOf(late, count);
            Arrays.sort(heart.late);
            return heart;
        }

        private void beat() {
            ranAt = System.nanoTime();
            LockSupport.unpark(thread);
        }

        private boolean await(long end) {
            while (ranAt == 0) {
                long left = end - System.nanoTime();
                if (left <= 0) {
                    return false;
                }
                LockSupport.parkNanos(left);
            }
            return true;
        }

        /** By nearest rank. */
        double quantileMillis(double quantile) {
            int rank = (int) Math.ceil(quantile * late.length);
            return late[Math.max(rank, 1) - 1] / 1e6;
        }
    }
}
