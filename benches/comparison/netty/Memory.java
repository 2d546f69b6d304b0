import java.lang.management.ManagementFactory;
import java.lang.management.MemoryType;
import java.util.concurrent.CyclicBarrier;

/**
 * Memory of pending timeouts, of those of threads that have ended, and after a storm of cancels.
 *
 * <p>For a pending timeout the fair figure is the heap in use after a collection: the resident set
 * of a JVM says how much garbage it was allowed to pile up. After the storm both are printed.
 */
final class Memory {
    private static final int FAR_MILLIS = 3_600_000;
    private static final int SETTLE_MILLIS = 2_000;
    private static final int STORM_DELAY_MILLIS = 60_000;
    /** Threads that live at the same time. */
    private static final int WAVE = 250;

    /** The handles are dropped: the wheel alone holds the timeouts. */
    static void pending(int captures) throws Exception {
        int timeouts = Driver.size("memory");
        Wheel wheel = new Wheel();
        long before = heapAfterCollection();
        schedule(wheel, captures, timeouts);
        printGrowth(wheel, before, timeouts);
    }

    private static void schedule(Wheel wheel, int captures, int timeouts) {
        for (int i = 0; i < timeouts; i++) {
            wheel.schedule(Captures.task(captures, i), FAR_MILLIS);
        }
    }

    private static void printGrowth(Wheel wheel, long before, int timeouts) throws Exception {
        Thread.sleep(wheel.millisToMove(timeouts) + 500);
        Driver.print("bytes_per_timeout", (double) (heapAfterCollection() - before) / timeouts);
    }

    static void storm(int cancelled) throws Exception {
        Wheel wheel = new Wheel();
        System.gc();
        double before = Wheel.status("self", "VmRSS");
        for (int i = 0; i < cancelled; i++) {
            wheel.schedule(Wheel.PROBE, STORM_DELAY_MILLIS).cancel();
        }
        Thread.sleep(SETTLE_MILLIS);
        Driver.print("rss_mib_after", (Wheel.status("self", "VmRSS") - before) / 1024);
        Driver.print("heap_mib_after", heapAfterCollection() / 1048576.0);
    }

    static void shortLived(int threads) throws Exception {
        int timeouts = Driver.size("short_lived");
        Wheel wheel = new Wheel();
        waves(timeouts, () -> {}); // pays for the threads themselves
        long before = heapAfterCollection();
        waves(threads, () -> schedule(wheel, 16, timeouts / threads));
        printGrowth(wheel, before, timeouts);
    }

    /** The threads of a wave end when all of them have done their work. */
    private static void waves(int threads, Runnable work) throws Exception {
        for (int begun = 0; begun < threads; begun += WAVE) {
            int wave = Math.min(WAVE, threads - begun);
            CyclicBarrier working = new CyclicBarrier(wave + 1);
            for (int i = 0; i < wave; i++) {
                Flood.start(() -> {
                    work.run();
                    working.await();
                });
            }
            working.await();
        }
    }

    /**
     * What the collection left, by its own account: the heap in use a moment later includes the
     * buffers that threads allocate from, of 20 MB each in a large heap. Twice, because what the
     * first pass finds unreachable may hold something else.
     */
    private static long heapAfterCollection() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .mapToLong(pool -> pool.getCollectionUsage().getUsed())
                .sum();
    }
}
