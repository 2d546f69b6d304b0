import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** A heartbeat, or a single timeout, beside threads that use the timer as fast as they can. */
final class Flood {
    private static final long PERIOD_NANOS = 5_000_000;
    private static final long GIVE_UP_SECONDS = 60;
    /** Operations between two looks whether the flood is over. */
    private static final int BATCH = 100;

    private final CyclicBarrier begun;
    private volatile boolean over;

    /** Returns when all threads pour. */
    Flood(Wheel wheel, String kind, int captures, int threads) throws Exception {
        begun = new CyclicBarrier(threads + 1);
        int window = Driver.size("flood_window");
        for (int i = 0; i < threads; i++) {
            int number = i;
            start(() -> {
                Worker worker = new Worker(wheel, kind, captures, window, number);
                begun.await();
                while (!over) {
                    worker.batch(BATCH);
                }
                begun.await();
            });
        }
        begun.await();
    }

    /** Returns when no thread pours any more. */
    void end() throws Exception {
        over = true;
        begun.await();
    }

    interface Body {
        void run() throws Exception;
    }

    static void start(Body body) {
        Thread thread = new Thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        });
        thread.start();
    }

    /** On the flooded timer, or as control beside a flood of another one. */
    static void heartbeat(int threads, String kind, boolean sameTimer) throws Exception {
        int millis = Driver.size("flood_ms");
        beside(threads, kind, sameTimer, millis / 3); // warms up
        System.gc();
        Heartbeat heart = beside(threads, kind, sameTimer, millis);
        Driver.print("p50_ms", heart.late.quantile(0.5) / 1e6);
        Driver.print("p99_ms", heart.late.quantile(0.99) / 1e6);
        Driver.print("max_ms", heart.late.quantile(1) / 1e6);
        Driver.print("beats", heart.beats);
    }

    private static Heartbeat beside(int threads, String kind, boolean sameTimer, int millis)
            throws Exception {
        try (Wheel wheel = new Wheel(1_000); Wheel other = new Wheel(1_000)) {
            Flood flood = new Flood(sameTimer ? wheel : other, kind, 16, threads);
            Heartbeat heart = new Heartbeat(millis);
            heart.listen(wheel, System.nanoTime() + millis * 1_000_000L);
            flood.end();
            return heart;
        }
    }

    /** A beat every 5 ms, the next one scheduled when the last has run. */
    private static final class Heartbeat {
        private final Thread thread = Thread.currentThread();
        private final LateTimes late;
        private volatile long ranAt;
        private int beats;

        Heartbeat(int millis) {
            late = new LateTimes(millis);
        }

        void listen(Wheel wheel, long end) {
            while (System.nanoTime() < end) {
                ranAt = 0;
                long due = System.nanoTime() + PERIOD_NANOS;
                wheel.scheduleNanos(timeout -> {
                    ranAt = System.nanoTime();
                    LockSupport.unpark(thread);
                }, PERIOD_NANOS);
                while (ranAt == 0 && System.nanoTime() < end) {
                    LockSupport.parkNanos(end - System.nanoTime());
                }
                // A beat that is overdue at the end enters with its lateness by then.
                long ran = ranAt;
                if (ran != 0 || end > due) {
                    late.note((ran != 0 ? ran : end) - due);
                    beats += ran != 0 ? 1 : 0;
                }
            }
        }
    }

    /** A fresh timeout of one tick, while a producer schedules and cancels at full speed. */
    static void backlog() throws Exception {
        try (Wheel wheel = new Wheel()) {
            Flood flood = new Flood(wheel, "schedule_cancel", 0, 1);
            Thread.sleep(Driver.size("backlog_ms") / 6); // warms up
            flood.end();
        }
        System.gc();
        Wheel wheel = new Wheel();
        Flood flood = new Flood(wheel, "schedule_cancel", 0, 1);
        Thread.sleep(Driver.size("backlog_ms"));
        LateTimes late = new LateTimes(1);
        long delay = TimeUnit.MILLISECONDS.toNanos(Wheel.TICK_MILLIS);
        wheel.scheduleNanos(late.task(System.nanoTime() + delay), delay);
        if (!late.await(GIVE_UP_SECONDS)) {
            throw new IllegalStateException("not fired within " + GIVE_UP_SECONDS + " s");
        }
        Driver.print("ticks_late", late.quantile(1) / delay);
        flood.end();
    }
}
