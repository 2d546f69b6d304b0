import io.netty.util.Timeout;
import java.util.Arrays;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.function.LongUnaryOperator;

/**
 * Nanoseconds for an operation of a producer, everything that producers and worker do to each
 * other included.
 *
 * <p>A repetition runs on a fresh timer, after a garbage collection, both outside of the
 * measurement. The first repetitions warm the JIT up and are dropped; the median of the others
 * counts.
 */
final class Operations {
    private static final int WARM_UPS = 3;
    private static final int MEASURED = 3;

    private Operations() {}

    /** One producer's share of a workload on one timer. */
    private interface Producer {
        /** What has to be there before the clock starts. */
        default void prepare() {}

        void produce();
    }

    private interface Workload {
        Producer producer(Wheel wheel, int operations, long firstIndex);
    }

    static void schedule(int producers, int captures) throws Exception {
        measure(producers, (wheel, each, first) -> new Schedule(wheel, captures, each, first));
    }

    static void scheduleCancel(int producers, int captures) throws Exception {
        measure(
                producers,
                (wheel, each, first) -> new ScheduleCancel(wheel, captures, each, first));
    }

    static void rolling(int producers, int captures) throws Exception {
        measure(
                producers,
                (wheel, each, first) ->
                        new Rolling(wheel, captures, each, first, Delays::usual));
    }

    /** Netty has none: cancel, and schedule again. */
    static void reschedule(int producers, int captures) throws Exception {
        measure(
                producers,
                (wheel, each, first) ->
                        new Rolling(wheel, captures, each, first, i -> Delays.PUSHED_BACK));
    }

    /** In core time: the producers share the cores. */
    static void crowd(int producers) throws Exception {
        double atOnce = Math.min(producers, Runtime.getRuntime().availableProcessors());
        int each = Sizes.of(Sizes.CROWD) / producers;
        double waited =
                median(
                        producers,
                        each,
                        (wheel, operations, first) ->
                                new ScheduleCancel(wheel, 16, operations, first));
        Driver.print("ns_per_op", waited * atOnce / producers);
    }

    private static final class Schedule implements Producer {
        private final Wheel wheel;
        private final int captures;
        private final long first;
        private final Timeout[] kept;

        Schedule(Wheel wheel, int captures, int operations, long first) {
            this.wheel = wheel;
            this.captures = captures;
            this.first = first;
            kept = new Timeout[operations];
        }

        @Override
        public void produce() {
            for (int i = 0; i < kept.length; i++) {
                kept[i] = wheel.schedule(Captures.task(captures, i), Delays.usual(first + i));
            }
        }
    }

    private record ScheduleCancel(Wheel wheel, int captures, int operations, long first)
            implements Producer {
        @Override
        public void produce() {
            for (int i = 0; i < operations; i++) {
                wheel.schedule(Captures.task(captures, i), Delays.usual(first + i)).cancel();
            }
        }
    }

    private static final class Rolling implements Producer {
        private final Wheel wheel;
        private final int captures;
        private final int operations;
        private final long first;
        private final LongUnaryOperator delay;
        private final Timeout[] live = new Timeout[Sizes.of(Sizes.WINDOW)];

        Rolling(
                Wheel wheel, int captures, int operations, long first, LongUnaryOperator delay) {
            this.wheel = wheel;
            this.captures = captures;
            this.operations = operations;
            this.first = first;
            this.delay = delay;
        }

        @Override
        public void prepare() {
            for (int i = 0; i < live.length; i++) {
                live[i] = wheel.schedule(Captures.task(captures, i), Delays.usual(first + i));
            }
        }

        @Override
        public void produce() {
            int oldest = 0;
            for (int i = 0; i < operations; i++) {
                live[oldest].cancel();
                live[oldest] =
                        wheel.schedule(Captures.task(captures, i), delay.applyAsLong(first + i));
                oldest = oldest + 1 == live.length ? 0 : oldest + 1;
            }
        }
    }

    private static void measure(int producers, Workload workload) throws Exception {
        int each = Sizes.of(Sizes.OPERATIONS) / producers;
        Driver.print("ns_per_op", median(producers, each, workload));
    }

    private static double median(int producers, int each, Workload workload) throws Exception {
        double[] costs = new double[MEASURED];
        for (int i = -WARM_UPS; i < MEASURED; i++) {
            double cost = repetition(producers, each, workload);
            if (i >= 0) {
                costs[i] = cost;
            }
        }
        Arrays.sort(costs);
        return (costs[(MEASURED - 1) / 2] + costs[MEASURED / 2]) / 2;
    }

    private static double repetition(int producers, int each, Workload workload) throws Exception {
        CyclicBarrier start = new CyclicBarrier(producers + 1);
        CountDownLatch end = new CountDownLatch(producers);
        try (Wheel wheel = new Wheel()) {
            for (int p = 0; p < producers; p++) {
                Producer producer = workload.producer(wheel, each, (long) p * each);
                new Thread(() -> {
                    producer.prepare();
                    await(start);
                    await(start);
                    producer.produce();
                    end.countDown();
                }).start();
            }
            start.await();
            System.gc();
            start.await();
            long began = System.nanoTime();
            end.await();
            return (double) (System.nanoTime() - began) / each;
        }
    }

    private static void await(CyclicBarrier barrier) {
        try {
            barrier.await();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }
}
