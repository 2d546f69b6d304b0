import java.util.Map;
import java.util.TreeMap;

/**
 * Runs one workload of the comparison on Netty's HashedWheelTimer and prints a line
 * {@code metric value} for each figure: {@code Driver WORKLOAD PARAM}, each in a JVM of its own,
 * so that the JIT compiles for that workload alone.
 */
public final class Driver {
    public static void main(String[] args) throws Exception {
        if (args[0].equals("version")) {
            // All artifacts have the same; a jar that bundles Netty may keep the version of one.
            var artifacts = io.netty.util.Version.identify().values().iterator();
            String version = artifacts.hasNext() ? artifacts.next().artifactVersion() : "unknown";
            System.out.println(version + " on Java " + System.getProperty("java.version"));
        } else {
            run(args[0], new Param(args[1]));
        }
    }

    private static void run(String workload, Param param) throws Exception {
        switch (workload) {
            case "schedule", "schedule_cancel", "reschedule", "rolling" ->
                    Batches.run(workload, param.count("producers"), param.count("captures"));
            case "crowd" -> Batches.crowd(param.count("producers"));
            case "growth" -> Growth.run(param.count("present"));
            case "fire_same_tick" ->
                    Firing.sameTick(param.count("timeouts"), param.text("captures").equals("0"));
            case "fire_spread" -> Firing.spread(param.count("timeouts"));
            case "resident" -> Resident.run(param.count("pending"));
            case "memory" -> Memory.pending(param.count("captures"));
            case "memory_storm" -> Memory.storm(param.count("cancelled"));
            case "short_lived" -> Memory.shortLived(param.count("threads"));
            case "lateness" ->
                    Lateness.run(param.text("tick").equals("1ms"), param.text("load").equals("busy"));
            case "backlog" -> Flood.backlog();
            case "flood" ->
                    Flood.heartbeat(
                            param.count("threads"),
                            param.text("flood"),
                            param.text("timer").equals("same"));
            default -> throw new IllegalArgumentException("no workload " + workload);
        }
    }

    static void print(String metric, double value) {
        System.out.println(metric + " " + value);
    }

    /** How much a workload does: {@code -DNAME=NUMBER}, from the one list that all rivals share. */
    static int size(String name) {
        Integer value = Integer.getInteger(name);
        if (value == null) {
            throw new IllegalArgumentException("-D" + name + "=NUMBER is missing");
        }
        return value;
    }

    /** {@code name=value;name=value}, or {@code -} for none. */
    private record Param(Map<String, String> values) {
        Param(String text) {
            this(new TreeMap<>());
            for (String pair : text.split(";")) {
                values.put(pair.replaceAll("=.*", ""), pair.replaceAll(".*=", ""));
            }
        }

        String text(String name) {
            return values.get(name);
        }

        int count(String name) {
            return Integer.parseInt(text(name));
        }
    }
}
