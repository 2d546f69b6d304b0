import java.util.HashMap;
import java.util.Map;

/**
 * Runs one workload of the comparison on Netty's HashedWheelTimer and prints a line
 * {@code metric value} for each figure: {@code Driver WORKLOAD PARAM}, each in a JVM of its own,
 * so that the JIT compiles for that workload alone.
 */
public final class Driver {
    private Driver() {}

    public static void main(String[] args) throws Exception {
        if (args.length == 1 && args[0].equals("version")) {
            System.out.println(version() + " on Java " + System.getProperty("java.version"));
            return;
        }
        if (args.length != 2) {
            throw new IllegalArgumentException("usage: Driver version | Driver WORKLOAD PARAM");
        }
        run(args[0], Param.parse(args[1]));
    }

    private static void run(String workload, Param param) throws Exception {
        switch (workload) {
            case "schedule" ->
                    Operations.schedule(param.integer("producers"), param.integer("captures"));
            case "schedule_cancel" ->
                    Operations.scheduleCancel(
                            param.integer("producers"), param.integer("captures"));
            case "reschedule" ->
                    Operations.reschedule(param.integer("producers"), param.integer("captures"));
            case "rolling" ->
                    Operations.rolling(param.integer("producers"), param.integer("captures"));
            case "growth" -> Growth.run(param.integer("present"));
            case "fire_same_tick" ->
                    Firing.sameTick(param.integer("timeouts"), param.text("captures"));
            case "fire_spread" -> Firing.spread(param.integer("timeouts"));
            case "resident" -> Resident.run(param.integer("pending"));
            case "memory" -> Memory.pending(param.integer("captures"));
            case "memory_storm" -> Memory.storm(param.integer("cancelled"));
            case "lateness" -> Lateness.run(param.text("tick"), param.text("load"));
            case "backlog" -> Backlog.run();
            case "flood" ->
                    Flood.run(
                            param.integer("threads"), param.text("flood"), param.text("timer"));
            case "crowd" -> Operations.crowd(param.integer("producers"));
            case "short_lived" -> ShortLived.run(param.integer("threads"));
            default -> throw new IllegalArgumentException("no workload " + workload);
        }
    }

    static void print(String metric, double value) {
        System.out.println(metric + " " + value);
    }

    private static String version() {
        // A jar that bundles Netty may keep the version of one artifact only; all have the same.
        var artifacts = io.netty.util.Version.identify().values().iterator();
        return artifacts.hasNext() ? artifacts.next().artifactVersion() : "unknown";
    }

    /** {@code name=value;name=value}, or {@code -} for none. */
    private record Param(Map<String, String> values) {
        static Param parse(String text) {
            Map<String, String> values = new HashMap<>();
            if (!text.equals("-")) {
                for (String pair : text.split(";")) {
                    String[] sides = pair.split("=", 2);
                    values.put(sides[0], sides.length == 2 ? sides[1] : "");
                }
            }
            return new Param(values);
        }

        String text(String name) {
            String value = values.get(name);
            if (value == null) {
                throw new IllegalArgumentException("the parameter lacks " + name + "=");
            }
            return value;
        }

        int integer(String name) {
            return Integer.parseInt(text(name));
        }
    }
}
