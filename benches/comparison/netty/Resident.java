/** What far timeouts cost while nothing is due, with a tick of 1 ms. */
final class Resident {
    private static final long HOUR_MILLIS = 3_600_000;

    static void run(int pending) throws Exception {
        Wheel wheel = new Wheel(1_000);
        for (int i = 0; i < pending; i++) {
            wheel.schedule(Wheel.PROBE, HOUR_MILLIS);
        }
        // Two turns of the wheel besides.
        Thread.sleep(wheel.millisToMove(pending) + 1_024);
        System.gc();
        Thread.sleep(200);
        long cpu = wheel.workerCpuNanos();
        double wakeUps = wheel.workerWakeUps();
        long began = System.nanoTime();
        Thread.sleep(Driver.size("resident_ms"));
        long elapsed = System.nanoTime() - began;
        Driver.print("cpu_percent", 100.0 * (wheel.workerCpuNanos() - cpu) / elapsed);
        Driver.print("wakeups_per_s", 1e9 * (wheel.workerWakeUps() - wakeUps) / elapsed);
    }
}
