import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;

/**
 * A started timer and what its worker thread costs. Netty's defaults (512 buckets, no limit) hold but
 * for the tick.
 */
final class Wheel implements AutoCloseable {
    /** The default tick of Netty, and of the comparison. */
    static final long TICK_MILLIS = 100;

    /** The probe without captures: one object for all timeouts, so it costs no memory. */
    static final TimerTask PROBE = timeout -> {};

    private final HashedWheelTimer timer;
    private final long tickMillis;
    private volatile Thread worker;
    private volatile Path status;

    /** Returns once the worker runs, so that no measurement pays for its start. */
    Wheel(long tick, TimeUnit unit) {
        // Netty's shortest tick is 1 ms.
        tickMillis = Math.max(1, unit.toMillis(tick));
        timer = new HashedWheelTimer(this::workerThread, tick, unit, 512);
        timer.start();
    }

    Wheel() {
        this(TICK_MILLIS, TimeUnit.MILLISECONDS);
    }

    private Thread workerThread(Runnable wheel) {
        worker = new Thread(() -> {
            status = Path.of("/proc").resolve(threadSelf()).resolve("status");
            wheel.run();
        }, "wheel");
        worker.setDaemon(true);
        return worker;
    }

    /** {@code PID/task/TID} of the calling thread: Java 17 does not tell the kernel's number. */
    private static Path threadSelf() {
        try {
            return Files.readSymbolicLink(Path.of("/proc/thread-self"));
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
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
    long workerWakeUps() throws IOException {
        return Long.parseLong(procField(status, "voluntary_ctxt_switches"));
    }

    /** The first word behind {@code name:} in a status file of /proc. */
    static String procField(Path status, String name) throws IOException {
        for (String line : Files.readAllLines(status)) {
            if (line.startsWith(name + ":")) {
                return line.substring(name.length() + 1).trim().split("\\s+")[0];
            }
        }
        throw new IOException("no " + name + " in " + status);
    }

    @Override
    public void close() {
        timer.stop();
    }
}
