import java.io.DataOutputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.metrics.KafkaMetric;
import org.apache.kafka.common.metrics.MetricsReporter;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.telemetry.ClientTelemetry;
import org.apache.kafka.server.telemetry.ClientTelemetryPayload;
import org.apache.kafka.server.telemetry.ClientTelemetryReceiver;

/**
 * A broker's plug-in that writes what clients push to a file: for each push the time, the client's
 * instance id, its client id, whether it is the last one, the content type and the payload, each
 * with its length before it.
 */
public class PayloadWriter implements MetricsReporter, ClientTelemetry, ClientTelemetryReceiver {
    private String path;

    @Override
    public void configure(Map<String, ?> configs) {
        path = (String) configs.get("payload.writer.path");
    }

    @Override
    public ClientTelemetryReceiver clientReceiver() {
        return this;
    }

    @Override
    public synchronized void exportMetrics(
            AuthorizableRequestContext context, ClientTelemetryPayload payload) {
        ByteBuffer data = payload.data().duplicate();
        byte[] bytes = new byte[data.remaining()];
        data.get(bytes);
        try (DataOutputStream out = new DataOutputStream(new FileOutputStream(path, true))) {
            write(out, Long.toString(System.currentTimeMillis()));
            write(out, payload.clientInstanceId().toString());
            write(out, context.clientId());
            write(out, Boolean.toString(payload.isTerminating()));
            write(out, payload.contentType());
            out.writeInt(bytes.length);
            out.write(bytes);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void write(DataOutputStream out, String text) throws IOException {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        out.writeInt(bytes.length);
        out.write(bytes);
    }

    @Override
    public void init(List<KafkaMetric> metrics) {}

    @Override
    public void metricChange(KafkaMetric metric) {}

    @Override
    public void metricRemoval(KafkaMetric metric) {}

    @Override
    public void close() {}
}
