import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryType;
import java.nio.file.Path;

/**
 * Memory of pending timeouts, and after a storm of cancels.
 *
 * <p>For a pending timeout the fair figure is the heap in use after a collection: the resident set
 * of a JVM says how much garbage it was allowed to pile up. After the storm both are printed.
 */
final class Memory {
    private static final int FAR_MILLIS = 3_600_000;
    private static final int SETTLE_MILLIS = 2_000;
    private static final int STORM_DELAY_MILLIS = 60_000;

    private Memory() {}

    /** The handles are dropped: the wheel alone holds the timeouts. */
    static void pending(int capturedBytes) throws Exception {
        int pending = Sizes.of(Sizes.MEMORY);
        Wheel wheel = new Wheel();
        long before = heapAfterCollection();
        for (long i = 0; i < pending; i++) {
            wheel.schedule(Captures.task(capturedBytes, i), FAR_MILLIS);
        }
        Thread.sleep(wheel.millisToMove(pending) + 500);
        Driver.print("bytes_per_timeout", (double) (heapAfterCollection() - before) / pending);
    }

    static void storm(int cancelled) throws Exception {
        Wheel wheel = new Wheel();
        System.gc();
        double before = residentMib();
        for (int i = 0; i < cancelled; i++) {
            wheel.schedule(Wheel.PROBE, STORM_DELAY_MILLIS).cancel();
        }
        Thread.sleep(SETTLE_MILLIS);
        Driver.print("rss_mib_after", residentMib() - before);
        Driver.print("heap_mib_after", heapAfterCollection() / 1048576.0);
    }

    /**
     * What the collection left, by its own account: the heap in use a moment later includes the
     * buffers that threads allocate from, of 20 MB each in a large heap. Twice, because what the
     * first pass finds unreachable may hold something else.
     */
    static long heapAfterCollection() {
        System.gc();
        System.gc();
        return ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP)
                .mapToLong(pool -> pool.getCollectionUsage().getUsed())
                .sum();
    }

    private static double residentMib() throws IOException {
        return Long.parseLong(Wheel.procField(Path.of("/proc/self/status"), "VmRSS")) / 1024.0;
    }
}
