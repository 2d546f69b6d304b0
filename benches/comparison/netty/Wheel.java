import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A started timer and what its worker thread costs. Netty's defaults (512 buckets, no limit) hold
 * but for the tick.
 */
final class Wheel implements AutoCloseable {
    /** The default tick of Netty, and of the comparison. */
    static final long TICK_MILLIS = 100;

    /** The probe without captures: one object for all timeouts, so it costs no memory. */
    static final TimerTask PROBE = timeout -> {};

    private final HashedWheelTimer timer;
    private final long tickMillis;
    private volatile Thread worker;
    /** {@code PID/task/TID}: Java 17 does not tell the kernel's number of a thread. */
    private volatile String kernelsName;

    Wheel() {
        this(TICK_MILLIS * 1_000);
    }

    /** Returns once the worker runs, so that no measurement pays for its start. */
    Wheel(long tickMicros) {
        // Netty's shortest tick is 1 ms.
        tickMillis = Math.max(1, tickMicros / 1_000);
        timer = new HashedWheelTimer(this::workerThread, tickMicros, TimeUnit.MICROSECONDS, 512);
        timer.start();
    }

    private Thread workerThread(Runnable wheel) {
        worker = new Thread(() -> {
            try {
                kernelsName = Files.readSymbolicLink(Path.of("/proc/thread-self")).toString();
            } catch (IOException e) {
                throw new IllegalStateException(e);
            }
            wheel.run();
        });
        worker.setDaemon(true);
        return worker;
    }

    Timeout schedule(TimerTask task, long delayMillis) {
        return timer.newTimeout(task, delayMillis, TimeUnit.MILLISECONDS);
    }

    Timeout scheduleNanos(TimerTask task, long delayNanos) {
        return timer.newTimeout(task, delayNanos, TimeUnit.NANOSECONDS);
    }

    /** Until so many new timeouts are in the wheel: the worker moves 100,000 a tick. */
    long millisToMove(int timeouts) {
        return (timeouts / 100_000 + 3) * tickMillis;
    }

    /** CPU time of the worker alone: the JVM's own threads are not the timer's doing. */
    long workerCpuNanos() {
        return ManagementFactory.getThreadMXBean().getThreadCpuTime(worker.getId());
    }

    /** How often the worker went to sleep by itself since it started. */
    double workerWakeUps() throws IOException {
        return status(kernelsName, "voluntary_ctxt_switches");
    }

    /** The number behind {@code name:} in the status of a process or thread. */
    static double status(String thread, String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc", thread, "status"))) {
            if (line.startsWith(name + ":")) {
                return Double.parseDouble(line.split("\\s+")[1]);
            }
        }
        throw new IOException("no " + name + " in the status of " + thread);
    }

    @Override
    public void close() {
        timer.stop();
    }
}
