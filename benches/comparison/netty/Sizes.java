/** How much a workload does: {@code -DNAME=NUMBER}, from the one list that all rivals share. */
final class Sizes {
    /** Operations of all producers in one repetition. */
    static final String OPERATIONS = "operations";
    /** Live timeouts of one producer in {@code rolling}. */
    static final String WINDOW = "window";
    static final String MEMORY = "memory";
    /** Timeouts that expire together in {@code growth}. */
    static final String EXPIRE = "expire";
    static final String RESIDENT_MILLIS = "resident_ms";
    static final String LATENESS_MILLIS = "lateness_ms";
    static final String BACKLOG_MILLIS = "backlog_ms";
    static final String FLOOD_MILLIS = "flood_ms";
    /** Live timeouts of one thread of a flood. */
    static final String FLOOD_WINDOW = "flood_window";
    /** Operations of all producers in one repetition of {@code crowd}. */
    static final String CROWD = "crowd";
    /** Timeouts of short-lived threads. */
    static final String SHORT_LIVED = "short_lived";

    private Sizes() {}

    static int of(String name) {
        Integer value = Integer.getInteger(name);
        if (value == null) {
            throw new IllegalArgumentException("-D" + name + "=NUMBER is missing");
        }
        return value;
    }
}
