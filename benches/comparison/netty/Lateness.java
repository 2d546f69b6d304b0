import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;

/** How late 10,000 timeouts a second fire, with delays of 5 to 500 ms. */
final class Lateness {
    private static final int PER_MILLI = 10;

    private Lateness() {}

    /** Netty raises a tick below 1 ms to 1 ms, and says so on stderr. */
    static void run(String tick, String load) throws Exception {
        if (load.equals("busy")) {
            keepOneCoreBusy();
        }
        int millis = Sizes.of(Sizes.LATENESS_MILLIS);
        try (Wheel wheel = new Wheel(micros(tick), TimeUnit.MICROSECONDS)) {
            measure(wheel, millis / 4); // warms up
            System.gc();
            LateTimes times = measure(wheel, millis);
            Driver.print("p50_us", times.quantileMicros(0.5));
            Driver.print("p99_us", times.quantileMicros(0.99));
            Driver.print("p999_us", times.quantileMicros(0.999));
            Driver.print("max_us", times.quantileMicros(1));
            Driver.print("early", times.early());
        }
    }

    private static long micros(String tick) {
        long number = Long.parseLong(tick.substring(0, tick.length() - 2));
        return switch (tick.substring(tick.length() - 2)) {
            case "us" -> number;
            case "ms" -> 1_000 * number;
            default -> throw new IllegalArgumentException("a tick in us or ms, not " + tick);
        };
    }

    private static void keepOneCoreBusy() {
        Thread spinner = new Thread(() -> {
            while (!Thread.interrupted()) {
                // Without a pause instruction, which would leave the core to others.
            }
        });
        spinner.setDaemon(true);
        spinner.start();
    }

    private static LateTimes measure(Wheel wheel, int millis) throws InterruptedException {
        LateTimes times = new LateTimes(millis * PER_MILLI);
        long began = System.nanoTime();
        for (int i = 0; i < times.count(); i++) {
            sleepUntil(began + i / PER_MILLI * 1_000_000L);
            long delay = Delays.shortMicros(i) * 1_000;
            wheel.scheduleNanos(times.task(i, System.nanoTime() + delay), delay);
        }
        times.awaitAll();
        return times;
    }

    private static void sleepUntil(long instant) {
        long left;
        while ((left = instant - System.nanoTime()) > 0) {
            LockSupport.parkNanos(left);
        }
    }
}
