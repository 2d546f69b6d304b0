import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Many timeouts that fire: all at one instant, or spread over one second. */
final class Firing {
    private static final int WARM_UPS = 2;
    private static final long GIVE_UP_SECONDS = 60;

    /**
     * For each timeout: from the first run to the last, and the worker's CPU time from before the
     * first is due until the last has run.
     */
    record Burst(double spanNanos, double cpuNanos) {}

    /** All share one task, or each has its own. */
    static void sameTick(int timeouts, boolean shared) throws Exception {
        for (int i = 0; i <= WARM_UPS; i++) {
            System.gc();
            try (Wheel wheel = new Wheel()) {
                Burst burst = burst(wheel, timeouts, shared);
                if (i == WARM_UPS) {
                    Driver.print("ns_per_op", burst.spanNanos);
                    Driver.print("cpu_ns_per_op", burst.cpuNanos);
                }
            }
        }
    }

    /** All share one instant, so far away that all have been moved into their bucket by then. */
    static Burst burst(Wheel wheel, int timeouts, boolean shared) throws Exception {
        Count count = new Count(timeouts);
        long toSchedule = timeouts / 2_000;
        long lead = toSchedule + wheel.millisToMove(timeouts);
        long due = System.nanoTime() + lead * 1_000_000;
        for (int i = 0; i < timeouts; i++) {
            TimerTask task = shared ? count : timeout -> count.run(timeout);
            wheel.scheduleNanos(task, due - System.nanoTime());
        }
        TimeUnit.NANOSECONDS.sleep(due - 1_000_000 - System.nanoTime());
        long cpu = wheel.workerCpuNanos();
        count.done.await();
        cpu = wheel.workerCpuNanos() - cpu;
        return new Burst((double) (count.last - count.first) / timeouts, (double) cpu / timeouts);
    }

    /** Counts runs, atomically like the probes of the other rivals; notes the first and the last. */
    private static final class Count implements TimerTask {
        private final int expected;
        private final AtomicInteger runs = new AtomicInteger();
        private long first;
        private long last;
        private final CountDownLatch done = new CountDownLatch(1);

        Count(int expected) {
            this.expected = expected;
        }

        @Override
        public void run(Timeout timeout) {
            int before = runs.getAndIncrement();
            if (before == 0) {
                first = System.nanoTime();
            }
            if (before + 1 == expected) {
                last = System.nanoTime();
                done.countDown();
            }
        }
    }

    /** The worker's CPU time from the first deadline until the last has run. */
    static void spread(int timeouts) throws Exception {
        for (int repetition = 0; repetition <= WARM_UPS; repetition++) {
            LateTimes times = new LateTimes(timeouts);
            try (Wheel wheel = new Wheel(1_000)) {
                long first = System.nanoTime() + 1_000_000_000L;
                for (int i = 0; i < timeouts; i++) {
                    long deadline = first + Delays.withinSecondNanos(i, timeouts);
                    wheel.scheduleNanos(times.task(deadline), deadline - System.nanoTime());
                }
                System.gc();
                TimeUnit.NANOSECONDS.sleep(first - System.nanoTime());
                long cpu = wheel.workerCpuNanos();
                times.await(GIVE_UP_SECONDS);
                if (repetition == WARM_UPS) {
                    cpu = wheel.workerCpuNanos() - cpu;
                    Driver.print("cpu_ns_per_op", (double) cpu / timeouts);
                    Driver.print("p99_late_us", times.quantile(0.99) / 1e3);
                }
            }
        }
    }
}
