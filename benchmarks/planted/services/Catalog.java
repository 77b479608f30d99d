import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.SplittableRandom;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Keeps a catalogue in memory, and each request makes a copy of a part: java -XmxNm Catalog PORT.
 *
 * Environment: ENTRIES, which with the default needs most of a heap of 64 MB; CURRENCY and PAGE_SIZE, which change
 * nothing that a load shows.
 */
public class Catalog {
    static final int TEXT = 1024;
    static final int COPIED = 1000;
    static byte[][] catalogue;

    static String of(String name, String fallback) {
        return System.getenv().getOrDefault(name, fallback);
    }

    static double around(double mean) {
        double scatter = 0.3;
        return mean * Math.exp(scatter * ThreadLocalRandom.current().nextGaussian() - scatter * scatter / 2);
    }

    static byte[] page() {
        long sum = 0;
        byte[][] part = new byte[Math.max(1, (int) Math.round(around(COPIED)))][];
        for (int i = 0; i < part.length; i++) {
            part[i] = catalogue[ThreadLocalRandom.current().nextInt(catalogue.length)].clone();
            sum += part[i][i % TEXT];
        }
        return ("sum " + sum + "\n").getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        int entries = Integer.parseInt(of("ENTRIES", "48000"));
        catalogue = new byte[entries][];
        SplittableRandom random = new SplittableRandom(1);
        for (int i = 0; i < entries; i++) {
            catalogue[i] = new byte[TEXT];
            catalogue[i][i % TEXT] = (byte) random.nextInt();
        }
        String config = String.format("{\"heap_mb\": %d, \"entries\": %d, \"currency\": \"%s\", \"page_size\": %s}",
            Runtime.getRuntime().maxMemory() >> 20, entries, of("CURRENCY", "EUR"), of("PAGE_SIZE", "20"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        Map.of("/config", false, "/", true).forEach((path, work) -> server.createContext(path, exchange -> {
            byte[] body = work ? page() : config.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        }));
        server.setExecutor(Executors.newFixedThreadPool(16));
        server.start();
        System.out.println("listening on " + port);
    }
}
