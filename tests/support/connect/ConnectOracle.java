package org.apache.kafka.connect.runtime.distributed;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.Proxy;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.stream.Collectors;
import org.apache.kafka.common.utils.LogContext;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.connect.runtime.TargetState;
import org.apache.kafka.connect.runtime.distributed.WorkerCoordinator.ConnectorsAndTasks;
import org.apache.kafka.connect.storage.ClusterConfigState;
import org.apache.kafka.connect.util.ConnectorTaskId;

/** Kafka Connect's own classes, asked by lines of text (see oracle.py). */
public class ConnectOracle {
    private static final HexFormat HEX = HexFormat.of();
    private static long now = 1_000_000_000L;
    private static IncrementalCooperativeAssignor assignor;

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String answer;
            try {
                answer = answer(line.split(" "));
            } catch (Exception err) {
                answer = "refused " + err.getClass().getSimpleName();
            }
            out.println(answer);
        }
        out.flush();
    }

    private static String answer(String[] words) {
        switch (words[0]) {
            case "assignment":
                return HEX.formatHex(bytes(write(Integer.parseInt(words[1]), assignment(words))));
            case "metadata":
                return HEX.formatHex(bytes(metadata(words)));
            case "read-assignment":
                return readAssignment(words[1].equals("0"), ByteBuffer.wrap(HEX.parseHex(words[2])));
            case "read-metadata":
                return readMetadata(words[1].equals("0"), ByteBuffer.wrap(HEX.parseHex(words[2])));
            case "assignor":
                assignor = new IncrementalCooperativeAssignor(
                    new LogContext(), clock(), Integer.parseInt(words[1]));
                return "-";
            case "round":
                return round(words);
            case "time":
                return time(words);
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    // -- encodings -------------------------------------------------------------------------------

    private static ExtendedAssignment assignment(String[] words) {
        return new ExtendedAssignment(
            Short.parseShort(words[1]), Short.parseShort(words[2]), text(words[3]), text(words[4]),
            Long.parseLong(words[5]), names(words[6]), tasks(words[7]), names(words[8]),
            tasks(words[9]), Integer.parseInt(words[10]));
    }

    private static ByteBuffer write(int version, ExtendedAssignment assignment) {
        return version == 0
            ? ConnectProtocol.serializeAssignment(assignment)
            : IncrementalCooperativeConnectProtocol.serializeAssignment(assignment, version == 2);
    }

    private static ByteBuffer metadata(String[] words) {
        int version = Integer.parseInt(words[1]);
        long offset = Long.parseLong(words[3]);
        if (version == 0)
            return ConnectProtocol.serializeMetadata(
                new ConnectProtocol.WorkerState(text(words[2]), offset));
        ExtendedAssignment runs = words.length == 4
            ? null
            : assignment(Arrays.copyOfRange(words, 4, words.length));
        return IncrementalCooperativeConnectProtocol.serializeMetadata(
            new ExtendedWorkerState(text(words[2]), offset, runs), version == 2);
    }

    private static String readAssignment(boolean eager, ByteBuffer bytes) {
        if (!eager)
            return shown(IncrementalCooperativeConnectProtocol.deserializeAssignment(bytes));
        ConnectProtocol.Assignment read = ConnectProtocol.deserializeAssignment(bytes);
        return String.join(" ", String.valueOf(read.error()), hex(read.leader()),
            hex(read.leaderUrl()), String.valueOf(read.offset()), shownNames(read.connectors()),
            shownTasks(read.tasks()));
    }

    private static String readMetadata(boolean eager, ByteBuffer bytes) {
        if (eager) {
            ConnectProtocol.WorkerState read = ConnectProtocol.deserializeMetadata(bytes);
            return hex(read.url()) + " " + read.offset();
        }
        ExtendedWorkerState read =
            IncrementalCooperativeConnectProtocol.deserializeMetadata(bytes);
        String said = hex(read.url()) + " " + read.offset();
        return read.assignment() == ExtendedAssignment.empty()
            ? said
            : said + " " + shown(read.assignment());
    }

    private static String shown(ExtendedAssignment read) {
        return String.join(" ", String.valueOf(read.error()), hex(read.leader()),
            hex(read.leaderUrl()), String.valueOf(read.offset()), shownNames(read.connectors()),
            shownTasks(read.tasks()), shownNames(read.revokedConnectors()),
            shownTasks(read.revokedTasks()), String.valueOf(read.delay()));
    }

    // -- assignor --------------------------------------------------------------------------------

    /** round LAST_GENERATION GENERATION ADVANCE_MS NAME:COUNT,.. WORKER CONNECTORS TASKS .. */
    private static String round(String[] words) {
        now += Long.parseLong(words[3]);
        ClusterConfigState state = configuration(words[4]);
        Map<String, ConnectorsAndTasks> members = members(words);
        IncrementalCooperativeAssignor.ClusterAssignment result = assignor.performTaskAssignment(
            state, Integer.parseInt(words[1]), Integer.parseInt(words[2]), members);
        List<String> told = new ArrayList<>();
        told.add(String.valueOf(assignor.delay));
        told.add(shownNames(assignor.candidateWorkersForReassignment));
        for (int at = 5; at < words.length; at += 3) {
            String worker = text(words[at]);
            told.add(words[at]);
            told.add(shownNames(result.newlyAssignedConnectors(worker)));
            told.add(shownTasks(result.newlyAssignedTasks(worker)));
            told.add(shownNames(result.newlyRevokedConnectors(worker)));
            told.add(shownTasks(result.newlyRevokedTasks(worker)));
        }
        return String.join(" ", told);
    }

    /** time REPEATS, then as round: the least milliseconds of a first round, and of one where a
     *  worker more is there; each with the round that follows. */
    private static String time(String[] words) {
        int repeats = Integer.parseInt(words[1]);
        ClusterConfigState state = configuration(words[4]);
        Map<String, ConnectorsAndTasks> members = members(words);
        double full = Double.MAX_VALUE;
        double joined = Double.MAX_VALUE;
        for (int count = 0; count < repeats; count++) {
            IncrementalCooperativeAssignor fresh =
                new IncrementalCooperativeAssignor(new LogContext(), clock(), 300_000);
            long begun = System.nanoTime();
            IncrementalCooperativeAssignor.ClusterAssignment result =
                fresh.performTaskAssignment(state, -1, 1, members);
            full = Math.min(full, (System.nanoTime() - begun) / 1e6);
            Map<String, ConnectorsAndTasks> more = new HashMap<>();
            for (String worker : members.keySet())
                more.put(worker, new ConnectorsAndTasks.Builder().with(
                    result.allAssignedConnectors().get(worker),
                    result.allAssignedTasks().get(worker)).build());
            more.put("newcomer", new ConnectorsAndTasks.Builder().build());
            begun = System.nanoTime();
            result = fresh.performTaskAssignment(state, 1, 2, more);
            Map<String, ConnectorsAndTasks> then = new HashMap<>();
            long between = System.nanoTime();
            for (String worker : more.keySet())
                then.put(worker, new ConnectorsAndTasks.Builder().with(
                    result.allAssignedConnectors().get(worker),
                    result.allAssignedTasks().get(worker)).build());
            between = System.nanoTime() - between;
            fresh.performTaskAssignment(state, 2, 3, then);
            joined = Math.min(joined, (System.nanoTime() - begun - between) / 1e6);
        }
        return full + " " + joined;
    }

    private static Map<String, ConnectorsAndTasks> members(String[] words) {
        Map<String, ConnectorsAndTasks> members = new HashMap<>();
        for (int at = 5; at < words.length; at += 3)
            members.put(text(words[at]), new ConnectorsAndTasks.Builder()
                .with(names(words[at + 1]), tasks(words[at + 2])).build());
        return members;
    }

    private static ClusterConfigState configuration(String word) {
        Map<String, Integer> counts = new HashMap<>();
        Map<String, Map<String, String>> configs = new HashMap<>();
        Map<String, TargetState> states = new HashMap<>();
        Map<ConnectorTaskId, Map<String, String>> tasks = new HashMap<>();
        for (ConnectorTaskId each : tasks(word)) {
            counts.put(each.connector(), each.task());
            configs.put(each.connector(), Collections.emptyMap());
            states.put(each.connector(), TargetState.STARTED);
            for (int task = 0; task < each.task(); task++)
                tasks.put(new ConnectorTaskId(each.connector(), task), Collections.emptyMap());
        }
        return new ClusterConfigState(618, null, counts, configs, states, tasks,
            Collections.emptyMap(), Collections.emptyMap(), Collections.emptyMap(),
            Collections.emptySet(), Collections.emptySet());
    }

    private static Time clock() {
        return (Time) Proxy.newProxyInstance(
            Time.class.getClassLoader(), new Class<?>[] {Time.class}, (self, method, given) -> {
                if (method.getName().equals("milliseconds"))
                    return now;
                throw new UnsupportedOperationException(method.getName());
            });
    }

    // -- words -----------------------------------------------------------------------------------

    private static byte[] bytes(ByteBuffer buffer) {
        byte[] found = new byte[buffer.remaining()];
        buffer.get(found);
        return found;
    }

    private static String text(String word) {
        return new String(HEX.parseHex(word.substring(1)), StandardCharsets.UTF_8);
    }

    private static String hex(String text) {
        return "x" + HEX.formatHex(text.getBytes(StandardCharsets.UTF_8));
    }

    private static List<String> names(String word) {
        return word.equals("-")
            ? Collections.emptyList()
            : Arrays.stream(word.split(",")).map(ConnectOracle::text).collect(Collectors.toList());
    }

    private static List<ConnectorTaskId> tasks(String word) {
        if (word.equals("-"))
            return Collections.emptyList();
        return Arrays.stream(word.split(",")).map(each -> {
            String[] parts = each.split(":");
            return new ConnectorTaskId(text(parts[0]), Integer.parseInt(parts[1]));
        }).collect(Collectors.toList());
    }

    private static String shownNames(Collection<String> names) {
        return names == null || names.isEmpty()
            ? "-"
            : names.stream().map(ConnectOracle::hex).collect(Collectors.joining(","));
    }

    private static String shownTasks(Collection<ConnectorTaskId> tasks) {
        return tasks == null || tasks.isEmpty()
            ? "-"
            : tasks.stream().map(each -> hex(each.connector()) + ":" + each.task())
                .collect(Collectors.joining(","));
    }
}
