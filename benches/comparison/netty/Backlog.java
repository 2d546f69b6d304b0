import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A fresh timeout of one tick, while a producer schedules and cancels at full speed. */
final class Backlog {
    private static final long GIVE_UP_SECONDS = 60;

    private Backlog() {}

    static void run() throws Exception {
        try (Wheel wheel = new Wheel()) {
            flood(wheel, Sizes.of(Sizes.BACKLOG_MILLIS) / 6).end(); // warms up
        }
        System.gc();
        Wheel wheel = new Wheel();
        Flood flood = flood(wheel, Sizes.of(Sizes.BACKLOG_MILLIS));
        Driver.print("ticks_late", latenessOfOne(wheel) / (Wheel.TICK_MILLIS * 1e6));
        flood.end();
    }

    private record Flood(Thread producer) {
        void end() throws InterruptedException {
            producer.interrupt();
            producer.join();
        }
    }

    /** Has gone on for the given time, and goes on. */
    private static Flood flood(Wheel wheel, long millis) throws InterruptedException {
        Thread producer = new Thread(() -> {
            while (!Thread.interrupted()) {
                wheel.schedule(Wheel.PROBE, 60_000).cancel();
            }
        });
        producer.start();
        Thread.sleep(millis);
        return new Flood(producer);
    }

    private static long latenessOfOne(Wheel wheel) throws InterruptedException {
        long[] firedAt = new long[1];
        CountDownLatch fired = new CountDownLatch(1);
        long deadline = System.nanoTime() + Wheel.TICK_MILLIS * 1_000_000;
        wheel.schedule(timeout -> {
            firedAt[0] = System.nanoTime();
            fired.countDown();
        }, Wheel.TICK_MILLIS);
        if (!fired.await(GIVE_UP_SECONDS, TimeUnit.SECONDS)) {
            throw new IllegalStateException("not fired within " + GIVE_UP_SECONDS + " s");
        }
        return firedAt[0] - deadline;
    }
}
