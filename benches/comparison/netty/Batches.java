import java.util.Arrays;
import java.util.concurrent.CyclicBarrier;

/**
 * Nanoseconds for an operation of a producer, everything that producers and worker do to each
 * other included.
 *
 * <p>A repetition runs on a fresh timer, after a garbage collection, both outside of the
 * measurement. The first repetitions warm the JIT up and are dropped; the median of the others
 * counts.
 */
final class Batches {
    private static final int WARM_UPS = 3;
    private static final int MEASURED = 3;

    static void run(String kind, int producers, int captures) throws Exception {
        int each = Driver.size("schedule") / producers;
        Driver.print("ns_per_op", median(kind, producers, captures, each));
    }

    /** In core time: the producers share the cores. */
    static void crowd(int producers) throws Exception {
        double atOnce = Math.min(producers, Runtime.getRuntime().availableProcessors());
        int each = Driver.size("crowd") / producers;
        double waited = median("schedule_cancel", producers, 16, each);
        Driver.print("ns_per_op", waited * atOnce / producers);
    }

    private static double median(String kind, int producers, int captures, int each)
            throws Exception {
        double[] costs = new double[MEASURED];
        for (int i = -WARM_UPS; i < MEASURED; i++) {
            double cost = repetition(kind, producers, captures, each);
            if (i >= 0) {
                costs[i] = cost;
            }
        }
        Arrays.sort(costs);
        return costs[MEASURED / 2];
    }

    private static double repetition(String kind, int producers, int captures, int each)
            throws Exception {
        CyclicBarrier turn = new CyclicBarrier(producers + 1);
        int window = kind.equals("schedule") ? each : Driver.size("window");
        try (Wheel wheel = new Wheel()) {
            for (int i = 0; i < producers; i++) {
                int number = i;
                Flood.start(() -> {
                    Worker worker = new Worker(wheel, kind, captures, window, number);
                    turn.await();
                    turn.await();
                    worker.batch(each);
                    turn.await();
                });
            }
            turn.await();
            System.gc();
            turn.await();
            long began = System.nanoTime();
            turn.await();
            return (double) (System.nanoTime() - began) / each;
        }
    }
}
