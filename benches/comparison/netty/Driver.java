import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryType;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Collections;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.LockSupport;

/**
 * Runs one workload of the comparison on Netty's HashedWheelTimer and prints a line
 * {@code metric value} for each figure: {@code Driver WORKLOAD PARAM}, each in a JVM of its own,
 * so that the JIT compiles for that workload alone.
 *
 * <p>Delays are as in {@code delays.rs}, sizes come as {@code -DNAME=NUMBER}.
 */
public final class Driver {
    private static final long HOUR_MILLIS = 3_600_000;
    /** Netty's default. */
    private static final int TICK_MICROS = 100_000;
    private static final int SHORT_TICK_MICROS = 1_000;

    private static String param;

    public static void main(String[] args) throws Exception {
        if (args[0].equals("version")) {
            // All artifacts have the same; a jar that bundles Netty may keep the version of one.
            var artifacts = io.netty.util.Version.identify().values().iterator();
            String version = artifacts.hasNext() ? artifacts.next().artifactVersion() : "unknown";
            System.out.println(version + " on Java " + System.getProperty("java.version"));
            return;
        }
        param = args[1];
        switch (args[0]) {
            case "growth" -> growth(count("present"));
            case "fire_same_tick" -> fire(count("timeouts"));
            case "fire_spread" -> fireSpread(count("timeouts"));
            case "fire_reused" -> fireReused(count("timeouts"));
            case "far" -> far(count("far"));
            case "kept" -> kept(count("far"));
            case "stop" -> stop(count("far"));
            case "resident" -> resident(count("pending"));
            case "memory" -> memory(count("captures"));
            case "memory_storm" -> storm(count("cancelled"));
            case "short_lived" -> shortLived(count("threads"));
            case "lateness" -> lateness();
            case "backlog" -> backlog();
            case "flood" -> flood();
            case "crowd" -> crowd(count("producers"));
            default -> {
                int each = size("schedule") / count("producers");
                print("ns_per_op", hotPath(args[0], count("captures"), each));
            }
        }
    }

    /** The value behind {@code name=} in the param. */
    private static String text(String name) {
        String prefix = name + "=";
        var pair = Arrays.stream(param.split(";")).filter(it -> it.startsWith(prefix)).findFirst();
        return pair.orElseThrow().substring(prefix.length());
    }

    private static int count(String name) {
        return Integer.parseInt(text(name));
    }

    private static int size(String name) {
        return Integer.getInteger(name);
    }

    private static void print(String metric, double value) {
        System.out.println(metric + " " + value);
    }

    /** Knuth's multiplicative hash, on 64 bits. */
    private static long scatter(long i, long range) {
        return Long.remainderUnsigned(i * 2_654_435_761L, range);
    }

    interface Body {
        void run() throws Exception;
    }

    private static void start(Body body) {
        thread(() -> {
            try {
                body.run();
            } catch (Exception e) {
                throw new IllegalStateException(e);
            }
        }).start();
    }

    private static Thread thread(Runnable body) {
        Thread thread = new Thread(body);
        thread.setDaemon(true);
        return thread;
    }

    // Hot paths: a repetition runs on a fresh timer, after a garbage collection, both outside of the
    // measurement. The first repetitions warm the JIT up; the median of the others counts.

    private static double hotPath(String kind, int captures, int each) throws Exception {
        double[] costs = new double[6];
        for (int i = 0; i < costs.length; i++) {
            costs[i] = repetition(kind, captures, each);
        }
        Arrays.sort(costs, 3, 6);
        return costs[4];
    }

    /** In core time: the producers share the cores. */
    private static void crowd(int producers) throws Exception {
        double atOnce = Math.min(producers, Runtime.getRuntime().availableProcessors());
        double waited = hotPath("schedule_cancel", 16, size("crowd") / producers);
        print("ns_per_op", waited * atOnce / producers);
    }

    private static double repetition(String kind, int captures, int each) throws Exception {
        int producers = count("producers");
        CyclicBarrier turn = new CyclicBarrier(producers + 1);
        int window = kind.equals("schedule") ? each : size("window");
        try (Wheel wheel = new Wheel(TICK_MICROS)) {
            for (int i = 0; i < producers; i++) {
                int number = i;
                start(() -> {
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

    private static void growth(int present) throws Exception {
        try (Wheel wheel = new Wheel(SHORT_TICK_MICROS)) {
            growth(wheel, 100); // warms up
        }
        Wheel wheel = new Wheel(TICK_MICROS);
        for (int i = 0; i < present; i++) {
            wheel.schedule(Wheel.PROBE, HOUR_MILLIS + HOUR_MILLIS * i / present);
        }
        Thread.sleep(wheel.millisToMove(present));
        System.gc();
        double[][] costs = growth(wheel, 5);
        String[] metrics = {"schedule_ns", "cancel_ns", "expire_ns"};
        for (int i = 0; i < metrics.length; i++) {
            Arrays.sort(costs[i]);
            print(metrics[i], costs[i][2]);
        }
    }

    private static double[][] growth(Wheel wheel, int repetitions) throws Exception {
        double[][] costs = new double[3][repetitions];
        Timeout[] batch = new Timeout[10_000];
        for (int repetition = 0; repetition < repetitions; repetition++) {
            long began = System.nanoTime();
            for (int i = 0; i < batch.length; i++) {
                batch[i] = wheel.schedule(Wheel.PROBE, HOUR_MILLIS + scatter(i, HOUR_MILLIS));
            }
            long scheduled = System.nanoTime();
            for (Timeout timeout : batch) {
                timeout.cancel();
            }
            costs[1][repetition] = (double) (System.nanoTime() - scheduled) / batch.length;
            costs[0][repetition] = (double) (scheduled - began) / batch.length;
            Thread.sleep(wheel.millisToMove(batch.length));
            costs[2][repetition] = burst(wheel, size("expire"), true)[0];
        }
        return costs;
    }

    // Firing: two repetitions warm up.

    private static void fire(int timeouts) throws Exception {
        for (int i = 0; i < 3; i++) {
            System.gc();
            try (Wheel wheel = new Wheel(TICK_MICROS)) {
                double[] nanos = burst(wheel, timeouts, text("captures").equals("0"));
                if (i == 2) {
                    print("ns_per_op", nanos[0]);
                    print("cpu_ns_per_op", nanos[1]);
                }
            }
        }
    }

    /**
     * All are due at one instant, so far away that all have been moved into their bucket by then. For
     * each timeout: from the first run to the last, and the worker's CPU time from before they are
     * due until the last has run. Runs are counted atomically, as by the probes of the other rivals.
     * The timeouts share one task, or each has its own.
     */
    private static double[] burst(Wheel wheel, int timeouts, boolean shared) throws Exception {
        AtomicInteger runs = new AtomicInteger();
        CountDownLatch done = new CountDownLatch(1);
        long[] ends = new long[2];
        TimerTask hit = timeout -> {
            int before = runs.getAndIncrement();
            if (before == 0) {
                ends[0] = System.nanoTime();
            }
            if (before + 1 == timeouts) {
                ends[1] = System.nanoTime();
                done.countDown();
            }
        };
        long lead = timeouts / 2_000 + wheel.millisToMove(timeouts);
        long due = System.nanoTime() + lead * 1_000_000;
        for (int i = 0; i < timeouts; i++) {
            TimerTask task = shared ? hit : timeout -> hit.run(timeout);
            wheel.scheduleNanos(task, due - System.nanoTime());
        }
        TimeUnit.NANOSECONDS.sleep(due - 1_000_000 - System.nanoTime());
        long cpu = wheel.workerCpuNanos();
        done.await();
        cpu = wheel.workerCpuNanos() - cpu;
        return new double[] {(double) (ends[1] - ends[0]) / timeouts, (double) cpu / timeouts};
    }

    /** The worker's CPU time from the first deadline until the last has run. */
    private static void fireSpread(int timeouts) throws Exception {
        for (int repetition = 0; repetition < 3; repetition++) {
            LateTimes times = new LateTimes(timeouts);
            try (Wheel wheel = new Wheel(SHORT_TICK_MICROS)) {
                long first = System.nanoTime() + 1_000_000_000L;
                for (int i = 0; i < timeouts; i++) {
                    long deadline = first + scatter(i, timeouts) * (1_000_000_000 / timeouts);
                    wheel.scheduleNanos(times.task(deadline), deadline - System.nanoTime());
                }
                System.gc();
                TimeUnit.NANOSECONDS.sleep(first - System.nanoTime());
                long cpu = wheel.workerCpuNanos();
                times.await();
                if (repetition == 2) {
                    print("cpu_ns_per_op", (double) (wheel.workerCpuNanos() - cpu) / timeouts);
                    times.print(1e3, "p99_late_us", 0.99);
                }
            }
        }
    }

    /** Netty raises a tick below 1 ms to 1 ms, and says so on stderr. */
    private static void lateness() throws Exception {
        if (text("load").equals("busy")) {
            start(() -> {
                while (true) {
                    // Without a pause instruction, which would leave the core to others.
                }
            });
        }
        int millis = size("lateness_ms");
        try (Wheel wheel = new Wheel(text("tick").equals("1ms") ? SHORT_TICK_MICROS : 100)) {
            lateness(wheel, millis / 4); // warms up
            System.gc();
            LateTimes times = lateness(wheel, millis);
            times.print(1e3, "p50_us", 0.5, "p99_us", 0.99, "p999_us", 0.999, "max_us", 1.0);
            print("early", times.early());
        }
    }

    private static LateTimes lateness(Wheel wheel, int millis) throws Exception {
        int timeouts = millis * 10;
        LateTimes times = new LateTimes(timeouts);
        long began = System.nanoTime();
        for (int i = 0; i < timeouts; i++) {
            long instant = began + i / 10 * 1_000_000L;
            for (long left; (left = instant - System.nanoTime()) > 0; ) {
                LockSupport.parkNanos(left);
            }
            long delay = (5_000 + scatter(i, 495_000)) * 1_000;
            wheel.scheduleNanos(times.task(System.nanoTime() + delay), delay);
        }
        times.await();
        return times;
    }

    /** The memory of five times as many that were cancelled is used again, as the collector likes. */
    private static void fireReused(int timeouts) throws Exception {
        for (int repetition = 0; repetition < 3; repetition++) {
            try (Wheel wheel = new Wheel(TICK_MICROS)) {
                Timeout[] live = new Timeout[5 * timeouts];
                Arrays.setAll(live, i -> wheel.schedule(Wheel.PROBE, remote(i)));
                Thread.sleep(wheel.millisToMove(live.length));
                Collections.shuffle(Arrays.asList(live));
                for (Timeout timeout : live) {
                    timeout.cancel();
                }
                Thread.sleep(wheel.millisToMove(live.length));
                double[] nanos = burst(wheel, timeouts, true);
                if (repetition == 2) {
                    print("ns_per_op", nanos[0]);
                    print("cpu_ns_per_op", nanos[1]);
                }
            }
        }
    }

    // Far timeouts, a great many of them.

    /** From ten minutes to one hour, in milliseconds. */
    private static long remote(long i) {
        return HOUR_MILLIS / 6 + scatter(i, 3_000_000);
    }

    /** The heart beats on one timer; the far timeouts go to the same, or as control to another. */
    private static void far(int far) throws Exception {
        farBeside(Math.min(far, 200_000), 100); // warms up
        System.gc();
        LateTimes late = farBeside(far, size("far_after_ms"));
        late.print(1e6, "p99_ms", 0.99, "max_ms", 1.0);
        print("beats", late.noted);
        print("ns_per_op", late.floodNanos / far);
    }

    private static LateTimes farBeside(int far, int afterMillis) throws Exception {
        // Closing a timer with that many would take longer than the measurement.
        Wheel wheel = new Wheel(SHORT_TICK_MICROS);
        Wheel flooded = text("timer").equals("same") ? wheel : new Wheel(SHORT_TICK_MICROS);
        Heart heart = new Heart(wheel);
        boolean cancels = text("beat").equals("cancelled");
        boolean byAnother = text("beat").equals("other_thread");
        Timeout[] handles = new Timeout[cancels ? far : 0];
        if (cancels) {
            Arrays.setAll(handles, i -> flooded.schedule(Worker.task(16, i), remote(i)));
            Thread.sleep(flooded.millisToMove(far) + 1_000);
        }
        CountDownLatch over = new CountDownLatch(1);
        CountDownLatch done = new CountDownLatch(byAnother ? 1 : 0);
        if (byAnother) {
            start(() -> {
                while (over.getCount() > 0) {
                    heart.beatAndRest();
                }
                done.countDown();
            });
        }
        long began = System.nanoTime();
        for (int i = 0; i < far; i++) {
            if (cancels) {
                handles[i].cancel();
            } else {
                flooded.schedule(Worker.task(16, i), remote(i));
            }
            if (!byAnother) {
                heart.beatAtStep(i);
            }
        }
        double nanos = System.nanoTime() - began;
        over.countDown();
        done.await();
        LateTimes late = heart.goOn(afterMillis);
        late.floodNanos = nanos;
        return late;
    }

    /** A timeout of 5 ms every 2 ms. */
    private static final class Heart {
        private final Wheel wheel;
        private final LateTimes late = new LateTimes(1_000_000);
        private long next = System.nanoTime();
        private int beats;

        Heart(Wheel wheel) {
            this.wheel = wheel;
        }

        private void beat(long now) {
            wheel.scheduleNanos(late.task(now + 5_000_000), 5_000_000);
            next = now + 2_000_000;
            beats++;
        }

        /** Between two operations at full speed. */
        void beatAtStep(int i) {
            if (i % 64 == 0) {
                long now = System.nanoTime();
                if (now - next >= 0) {
                    beat(now);
                }
            }
        }

        void beatAndRest() throws InterruptedException {
            beat(System.nanoTime());
            Thread.sleep(2);
        }

        /** Beats for some time after the others, and waits until all beats have run. */
        LateTimes goOn(int millis) throws InterruptedException {
            long end = System.nanoTime() + millis * 1_000_000L;
            while (System.nanoTime() < end) {
                beatAndRest();
            }
            late.await(beats);
            return late;
        }
    }

    /** The worker's CPU time until all are in the wheel, and the time to schedule one. */
    private static void kept(int far) throws Exception {
        Wheel wheel = new Wheel(SHORT_TICK_MICROS);
        long cpu = wheel.workerCpuNanos();
        long began = System.nanoTime();
        for (int i = 0; i < far; i++) {
            wheel.schedule(Worker.task(16, i), remote(i));
        }
        print("ns_per_op", (double) (System.nanoTime() - began) / far);
        Thread.sleep(wheel.millisToMove(far) + 1_000);
        print("cpu_ns_per_op", (double) (wheel.workerCpuNanos() - cpu) / far);
    }

    private static void stop(int far) throws Exception {
        Wheel wheel = new Wheel(SHORT_TICK_MICROS);
        for (int i = 0; i < far; i++) {
            wheel.schedule(Worker.task(16, i), remote(i));
        }
        Thread.sleep(wheel.millisToMove(far) + 1_000);
        System.gc();
        long began = System.nanoTime();
        if (wheel.timer.stop().size() != far) {
            throw new IllegalStateException("not all were returned");
        }
        print("ns_per_op", (double) (System.nanoTime() - began) / far);
    }

    // Floods.

    /** A heartbeat on the flooded timer, or as control beside a flood of another one. */
    private static void flood() throws Exception {
        int millis = size("flood_ms");
        heartbeat(millis / 3); // warms up
        System.gc();
        LateTimes late = heartbeat(millis);
        late.print(1e6, "p50_ms", 0.5, "p99_ms", 0.99, "max_ms", 1.0);
        print("beats", late.noted - late.overdue);
    }

    private static LateTimes heartbeat(int millis) throws Exception {
        LateTimes late = new LateTimes(millis);
        try (Wheel wheel = new Wheel(SHORT_TICK_MICROS);
                Wheel other = new Wheel(SHORT_TICK_MICROS)) {
            Wheel flooded = text("timer").equals("same") ? wheel : other;
            beside(flooded, text("flood"), 16, count("threads"), () -> {
                beat(wheel, late, System.nanoTime() + millis * 1_000_000L);
            });
        }
        return late;
    }

    /** A beat every 5 ms until the end, the next one scheduled when the last has run. */
    private static void beat(Wheel wheel, LateTimes late, long end) throws Exception {
        long period = 5_000_000;
        var heard = new LinkedBlockingQueue<Long>();
        while (System.nanoTime() < end) {
            long due = System.nanoTime() + period;
            wheel.scheduleNanos(timeout -> heard.add(System.nanoTime()), period);
            Long ran = heard.poll(end - System.nanoTime(), TimeUnit.NANOSECONDS);
            if (ran != null) {
                late.note(ran - due);
            } else if (end > due) {
                // A beat that is overdue at the end enters with its lateness by then.
                late.note(end - due);
                late.overdue++;
            }
        }
    }

    /** A fresh timeout of one tick, while a producer schedules and cancels at full speed. */
    private static void backlog() throws Exception {
        try (Wheel wheel = new Wheel(TICK_MICROS)) {
            int warmUp = size("backlog_ms") / 6;
            beside(wheel, "schedule_cancel", 0, 1, () -> Thread.sleep(warmUp));
        }
        System.gc();
        Wheel wheel = new Wheel(TICK_MICROS);
        beside(wheel, "schedule_cancel", 0, 1, () -> {
            Thread.sleep(size("backlog_ms"));
            LateTimes late = new LateTimes(1);
            long delay = TICK_MICROS * 1_000L;
            wheel.scheduleNanos(late.task(System.nanoTime() + delay), delay);
            late.await();
            late.print(delay, "ticks_late", 1.0);
        });
    }

    /** Does something while `threads` threads use the timer as fast as they can. */
    private static void beside(Wheel wheel, String kind, int captures, int threads, Body body)
            throws Exception {
        CyclicBarrier turn = new CyclicBarrier(threads + 1);
        CountDownLatch over = new CountDownLatch(1);
        for (int i = 0; i < threads; i++) {
            int number = i;
            start(() -> {
                Worker worker = new Worker(wheel, kind, captures, size("flood_window"), number);
                turn.await();
                while (over.getCount() > 0) {
                    worker.batch(100);
                }
                turn.await();
            });
        }
        turn.await();
        body.run();
        over.countDown();
        turn.await();
    }

    // Rest and memory. For a pending timeout the fair figure is the heap in use after a collection: the
    // resident set of a JVM says how much garbage it was allowed to pile up. After the storm both are
    // printed. Handles are dropped: the wheel alone holds the timeouts.

    private static void resident(int pending) throws Exception {
        Wheel wheel = new Wheel(SHORT_TICK_MICROS);
        schedule(wheel, 0, pending);
        // Two turns of the wheel besides.
        Thread.sleep(wheel.millisToMove(pending) + 1_024);
        System.gc();
        Thread.sleep(200);
        long cpu = wheel.workerCpuNanos();
        double wakeUps = wheel.workerWakeUps();
        long began = System.nanoTime();
        Thread.sleep(size("resident_ms"));
        long elapsed = System.nanoTime() - began;
        print("cpu_percent", 100.0 * (wheel.workerCpuNanos() - cpu) / elapsed);
        print("wakeups_per_s", 1e9 * (wheel.workerWakeUps() - wakeUps) / elapsed);
    }

    private static void schedule(Wheel wheel, int captures, int timeouts) {
        for (int i = 0; i < timeouts; i++) {
            wheel.schedule(Worker.task(captures, i), HOUR_MILLIS);
        }
    }

    private static void memory(int captures) throws Exception {
        Wheel wheel = new Wheel(TICK_MICROS);
        long before = heapAfterCollection();
        schedule(wheel, captures, size("memory"));
        printGrowth(wheel, before, size("memory"));
    }

    private static void printGrowth(Wheel wheel, long before, int timeouts) throws Exception {
        Thread.sleep(wheel.millisToMove(timeouts) + 500);
        print("bytes_per_timeout", (double) (heapAfterCollection() - before) / timeouts);
    }

    private static void storm(int cancelled) throws Exception {
        Wheel wheel = new Wheel(TICK_MICROS);
        System.gc();
        double before = Wheel.status("self", "VmRSS");
        for (int i = 0; i < cancelled; i++) {
            wheel.schedule(Wheel.PROBE, 60_000).cancel();
        }
        Thread.sleep(2_000);
        print("rss_mib_after", (Wheel.status("self", "VmRSS") - before) / 1024);
        print("heap_mib_after", heapAfterCollection() / 1048576.0);
    }

    private static void shortLived(int threads) throws Exception {
        int timeouts = size("short_lived");
        Wheel wheel = new Wheel(TICK_MICROS);
        waves(timeouts, () -> {}); // pays for the threads themselves
        long before = heapAfterCollection();
        waves(threads, () -> schedule(wheel, 16, timeouts / threads));
        printGrowth(wheel, before, timeouts);
    }

    /** 250 threads live at a time, and end when all of them have done their work. */
    private static void waves(int threads, Body work) throws Exception {
        for (int begun = 0; begun < threads; begun += 250) {
            int wave = Math.min(250, threads - begun);
            CyclicBarrier working = new CyclicBarrier(wave + 1);
            for (int i = 0; i < wave; i++) {
                start(() -> {
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

    /** A started timer and what its worker costs. Netty's defaults hold but for the tick. */
    private static final class Wheel implements AutoCloseable {
        /** The probe without captures: one object for all timeouts, so it costs no memory. */
        static final TimerTask PROBE = timeout -> {};

        private final HashedWheelTimer timer;
        private final long tickMillis;
        private Thread worker;
        /** {@code PID/task/TID}: Java 17 does not tell the kernel's number of a thread. */
        private String kernelsName;

        /** Returns once the worker runs, so that no measurement pays for its start. */
        Wheel(int tickMicros) throws InterruptedException {
            // Netty's shortest tick is 1 ms.
            tickMillis = Math.max(1, tickMicros / 1_000);
            timer = new HashedWheelTimer(Driver::thread, tickMicros, TimeUnit.MICROSECONDS, 512);
            CountDownLatch running = new CountDownLatch(1);
            schedule(timeout -> {
                worker = Thread.currentThread();
                kernelsName = Files.readSymbolicLink(Path.of("/proc/thread-self")).toString();
                running.countDown();
            }, 0);
            running.await();
        }

        Timeout schedule(TimerTask task, long delayMillis) {
            return timer.newTimeout(task, delayMillis, TimeUnit.MILLISECONDS);
        }

        Timeout scheduleNanos(TimerTask task, long delayNanos) {
            return timer.newTimeout(task, delayNanos, TimeUnit.NANOSECONDS);
        }

        /** Until `timeouts` new ones are in the wheel: the worker moves 100,000 a tick. */
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
            var lines = Files.readAllLines(Path.of("/proc", thread, "status")).stream();
            String line = lines.filter(it -> it.startsWith(name + ":")).findFirst().orElseThrow();
            return Double.parseDouble(line.split("\\s+")[1]);
        }

        @Override
        public void close() {
            timer.stop();
        }
    }

    /** One thread's use of a timer, on the hot paths and in floods. */
    private static final class Worker {
        private static final int ENDED = 100;
        private static long sink;

        private final Wheel wheel;
        private final String kind;
        private final int captures;
        /** A ring. */
        private final Timeout[] live;
        private int oldest;
        private long scheduled;

        /** Workers begin at different places of the same sequence of delays. */
        Worker(Wheel wheel, String kind, int captures, int window, int thread) throws Exception {
            this.wheel = wheel;
            this.kind = kind;
            this.captures = captures;
            live = new Timeout[kind.equals("cancel_ended") ? ENDED : window];
            scheduled = (long) thread * live.length;
            if (kind.equals("rolling") || kind.equals("reschedule")) {
                schedule(window);
            } else if (kind.equals("cancel_ended")) {
                CountDownLatch runs = new CountDownLatch(ENDED);
                Arrays.setAll(live, i -> wheel.schedule(timeout -> runs.countDown(), 2));
                runs.await();
            }
        }

        /** A task that captures `bytes` bytes. Without captures one object serves all timeouts. */
        static TimerTask task(int bytes, long a) {
            long b = a + 1;
            long c = a + 2;
            return switch (bytes) {
                case 0 -> Wheel.PROBE;
                case 16 -> timeout -> sink += a + b;
                default -> timeout -> sink += a + b + c;
            };
        }

        /** A method for each kind, so that the JIT compiles it alone. */
        void batch(int operations) {
            switch (kind) {
                case "schedule" -> schedule(operations);
                case "schedule_cancel" -> scheduleAndCancel(operations);
                case "rolling" -> roll(operations);
                case "reschedule" -> pushBack(operations);
                case "cancel_ended" -> cancelEnded(operations);
                default -> throw new IllegalArgumentException("no work " + kind);
            }
        }

        private void schedule(int operations) {
            for (int i = 0; i < operations; i++) {
                schedule(usual(scheduled));
            }
        }

        private void scheduleAndCancel(int operations) {
            long first = scheduled;
            for (int i = 0; i < operations; i++) {
                wheel.schedule(task(captures, i), usual(first + i)).cancel();
            }
            scheduled = first + operations;
        }

        private void roll(int operations) {
            for (int i = 0; i < operations; i++) {
                live[oldest].cancel();
                schedule(usual(scheduled));
            }
        }

        /** Netty has none: cancel, and schedule again. A {@code long} is a delay. */
        private void pushBack(int operations) {
            for (int i = 0; i < operations; i++) {
                live[oldest].cancel();
                schedule(60_000L);
            }
        }

        private void cancelEnded(int operations) {
            for (int i = 0; i < operations; i++) {
                live[i % ENDED].cancel();
            }
        }

        private void schedule(long delay) {
            live[oldest] = wheel.schedule(task(captures, scheduled++), delay);
            oldest = oldest + 1 == live.length ? 0 : oldest + 1;
        }

        /** From 1 to 60 s, in milliseconds. */
        private static long usual(long i) {
            return 1_000 + scatter(i, 59_000);
        }
    }

    /** How late each of a number of timeouts ran, by {@code System.nanoTime}; noted by one thread. */
    private static final class LateTimes {
        private final long[] nanos;
        private final CountDownLatch left;
        private volatile int noted;
        /** Those of them that had not run when they were noted. */
        private int overdue;
        /** What the flood beside them took. */
        private double floodNanos;

        LateTimes(int count) {
            nanos = new long[count];
            left = new CountDownLatch(count);
        }

        /** The deadline has to be computed before the timeout is handed in, or early runs look late. */
        TimerTask task(long deadline) {
            return timeout -> note(System.nanoTime() - deadline);
        }

        void note(long late) {
            nanos[noted++] = late;
            left.countDown();
        }

        void await() throws InterruptedException {
            if (!left.await(60, TimeUnit.SECONDS)) {
                throw new IllegalStateException("not all fired within 60 s");
            }
        }

        /** Waits for `some` of them. */
        void await(int some) throws InterruptedException {
            for (int i = 0; noted < some; i++) {
                if (i == 60_000) {
                    throw new IllegalStateException("not all fired within 60 s");
                }
                Thread.sleep(1);
            }
        }

        /** Metrics, each with its quantile, by nearest rank. */
        void print(double unitNanos, Object... metrics) {
            Arrays.sort(nanos, 0, noted);
            for (int i = 0; i < metrics.length; i += 2) {
                int rank = (int) Math.ceil((double) metrics[i + 1] * noted);
                Driver.print((String) metrics[i], nanos[Math.max(rank, 1) - 1] / unitNanos);
            }
        }

        long early() {
            return Arrays.stream(nanos, 0, noted).filter(late -> late < 0).count();
        }
    }
}
