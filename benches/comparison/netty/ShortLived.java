import java.util.concurrent.CountDownLatch;

/** Memory of timeouts whose threads have ended, as heap in use. */
final class ShortLived {
    private static final int FAR_MILLIS = 3_600_000;
    /** Captured by each task. */
    private static final int BYTES = 16;
    /** Threads that live at the same time. */
    private static final int WAVE = 250;

    private ShortLived() {}

    static void run(int threads) throws Exception {
        int timeouts = Sizes.of(Sizes.SHORT_LIVED);
        Wheel wheel = new Wheel();
        waves(timeouts, () -> {}); // pays for the threads themselves
        long before = Memory.heapAfterCollection();
        waves(threads, () -> schedule(wheel, timeouts / threads));
        Thread.sleep(wheel.millisToMove(timeouts) + 500);
        double growth = Memory.heapAfterCollection() - before;
        Driver.print("bytes_per_timeout", growth / timeouts);
    }

    private static void schedule(Wheel wheel, int timeouts) {
        for (int i = 0; i < timeouts; i++) {
            wheel.schedule(Captures.task(BYTES, i), FAR_MILLIS);
        }
    }

    /** The threads of a wave end when all of them have done their work. */
    private static void waves(int threads, Runnable work) throws InterruptedException {
        for (int begun = 0; begun < threads; begun += WAVE) {
            CountDownLatch working = new CountDownLatch(Math.min(WAVE, threads - begun));
            Thread[] wave = new Thread[(int) working.getCount()];
            for (int i = 0; i < wave.length; i++) {
                wave[i] = new Thread(() -> {
                    work.run();
                    working.countDown();
                    awaitUninterrupted(working);
                });
                wave[i].start();
            }
            for (Thread thread : wave) {
                thread.join();
            }
        }
    }

    private static void awaitUninterrupted(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }
}
