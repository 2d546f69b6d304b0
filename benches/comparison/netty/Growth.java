import io.netty.util.Timeout;
import java.util.Arrays;

/** What schedule, cancel and expire cost beside many far timeouts. */
final class Growth {
    private static final int WARM_UPS = 100;
    private static final int MEASURED = 5;
    /** Scheduled and cancelled together. */
    private static final int BATCH = 10_000;

    static void run(int present) throws Exception {
        try (Wheel wheel = new Wheel(1_000)) {
            measure(wheel, WARM_UPS);
        }
        Wheel wheel = new Wheel();
        for (int i = 0; i < present; i++) {
            wheel.schedule(Wheel.PROBE, Delays.far(i, present));
        }
        Thread.sleep(wheel.millisToMove(present));
        System.gc();
        double[][] costs = measure(wheel, MEASURED);
        String[] metrics = {"schedule_ns", "cancel_ns", "expire_ns"};
        for (int i = 0; i < metrics.length; i++) {
            Arrays.sort(costs[i]);
            Driver.print(metrics[i], costs[i][MEASURED / 2]);
        }
    }

    private static double[][] measure(Wheel wheel, int repetitions) throws Exception {
        double[][] costs = new double[3][repetitions];
        Timeout[] batch = new Timeout[BATCH];
        for (int repetition = 0; repetition < repetitions; repetition++) {
            long began = System.nanoTime();
            for (int i = 0; i < BATCH; i++) {
                batch[i] = wheel.schedule(Wheel.PROBE, Delays.amongFar(i));
            }
            long scheduled = System.nanoTime();
            for (Timeout timeout : batch) {
                timeout.cancel();
            }
            costs[1][repetition] = (double) (System.nanoTime() - scheduled) / BATCH;
            costs[0][repetition] = (double) (scheduled - began) / BATCH;
            Thread.sleep(wheel.millisToMove(BATCH));
            costs[2][repetition] = Firing.burst(wheel, Driver.size("expire"), true).spanNanos();
        }
        return costs;
    }
}
