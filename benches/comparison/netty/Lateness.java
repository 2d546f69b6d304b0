import java.util.concurrent.locks.LockSupport;

/** How late 10,000 timeouts a second fire, with delays of 5 to 500 ms. */
final class Lateness {
    private static final int PER_MILLI = 10;
    private static final long GIVE_UP_SECONDS = 60;

    /** Netty raises a tick below 1 ms to 1 ms, and says so on stderr. */
    static void run(boolean wholeMillisecond, boolean busy) throws Exception {
        if (busy) {
            Thread spinner = new Thread(() -> {
                while (true) {
                    // Without a pause instruction, which would leave the core to others.
                }
            });
            spinner.setDaemon(true);
            spinner.start();
        }
        int millis = Driver.size("lateness_ms");
        try (Wheel wheel = new Wheel(wholeMillisecond ? 1_000 : 100)) {
            measure(wheel, millis / 4); // warms up
            System.gc();
            LateTimes times = measure(wheel, millis);
            Driver.print("p50_us", times.quantile(0.5) / 1e3);
            Driver.print("p99_us", times.quantile(0.99) / 1e3);
            Driver.print("p999_us", times.quantile(0.999) / 1e3);
            Driver.print("max_us", times.quantile(1) / 1e3);
            Driver.print("early", times.early());
        }
    }

    private static LateTimes measure(Wheel wheel, int millis) throws InterruptedException {
        LateTimes times = new LateTimes(millis * PER_MILLI);
        long began = System.nanoTime();
        for (int i = 0; i < millis * PER_MILLI; i++) {
            long instant = began + i / PER_MILLI * 1_000_000L;
            for (long left; (left = instant - System.nanoTime()) > 0; ) {
                LockSupport.parkNanos(left);
            }
            long delay = Delays.shortMicros(i) * 1_000;
            wheel.scheduleNanos(times.task(System.nanoTime() + delay), delay);
        }
        times.await(GIVE_UP_SECONDS);
        return times;
    }
}
