import io.netty.util.Timeout;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/** What schedule, cancel and expire cost beside many far timeouts. */
final class Growth {
    private static final int WARM_UPS = 100;
    private static final int MEASURED = 5;
    /** Scheduled and cancelled together. */
    private static final int BATCH = 10_000;

    static void run(int present) throws Exception {
        try (Wheel wheel = new Wheel(1, TimeUnit.MILLISECONDS)) {
            new Growth(wheel, WARM_UPS).measure();
        }
        Wheel wheel = new Wheel();
        for (int i = 0; i < present; i++) {
            wheel.schedule(Wheel.PROBE, Delays.far(i, present));
        }
        Thread.sleep(wheel.millisToMove(present));
        System.gc();
        Growth growth = new Growth(wheel, MEASURED);
        growth.measure();
        Driver.print("schedule_ns", median(growth.schedule));
        Driver.print("cancel_ns", median(growth.cancel));
        Driver.print("expire_ns", median(growth.expire));
    }

    private final Wheel wheel;
    private final double[] schedule;
    private final double[] cancel;
    private final double[] expire;
    private final Timeout[] batch = new Timeout[BATCH];

    private Growth(Wheel wheel, int repetitions) {
        this.wheel = wheel;
        schedule = new double[repetitions];
        cancel = new double[repetitions];
        expire = new double[repetitions];
    }

    private void measure() throws Exception {
        for (int i = 0; i < schedule.length; i++) {
            long began = System.nanoTime();
            scheduleBatch();
            long scheduled = System.nanoTime();
            cancelBatch();
            long cancelled = System.nanoTime();
            schedule[i] = (double) (scheduled - began) / batch.length;
            cancel[i] = (double) (cancelled - scheduled) / batch.length;
            Thread.sleep(wheel.millisToMove(batch.length));
            expire[i] = Firing.burst(wheel, Sizes.of(Sizes.EXPIRE), true).spanNanos();
        }
    }

    private void scheduleBatch() {
        for (int i = 0; i < batch.length; i++) {
            batch[i] = wheel.schedule(Wheel.PROBE, Delays.amongFar(i));
        }
    }

    private void cancelBatch() {
        for (Timeout timeout : batch) {
            timeout.cancel();
        }
    }

    private static double median(double[] values) {
        Arrays.sort(values);
        return (values[(values.length - 1) / 2] + values[values.length / 2]) / 2;
    }
}
