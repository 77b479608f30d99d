import com.sun.net.httpserver.HttpServer;
import java.io.FileReader;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Executors;
import java.util.concurrent.ThreadLocalRandom;

/**
 * Books rooms with a partner who takes his time, by a fixed pool of threads: java Booking PORT [FILE].
 *
 * The file has properties: threads; retry.count and hotel.chain, which change nothing that a load shows.
 */
public class Booking {
    static final double PARTNER_MS = 20;

    static double around(double mean) {
        double scatter = 0.3;
        return mean * Math.exp(scatter * ThreadLocalRandom.current().nextGaussian() - scatter * scatter / 2);
    }

    static byte[] book() {
        try {
            Thread.sleep(Math.round(around(PARTNER_MS)));
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
        return "booked\n".getBytes(StandardCharsets.UTF_8);
    }

    public static void main(String[] arguments) throws Exception {
        int port = Integer.parseInt(arguments[0]);
        Properties given = new Properties();
        if (arguments.length > 1) {
            try (var file = new FileReader(arguments[1], StandardCharsets.UTF_8)) {
                given.load(file);
            }
        }
        int threads = Integer.parseInt(given.getProperty("threads", "4"));
        String config = String.format("{\"threads\": %d, \"retry_count\": %s, \"hotel_chain\": \"%s\"}",
            threads, given.getProperty("retry.count", "3"), given.getProperty("hotel.chain", "all"));
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", port), 512);
        Map.of("/config", false, "/", true).forEach((path, work) -> server.createContext(path, exchange -> {
            byte[] body = work ? book() : config.getBytes(StandardCharsets.UTF_8);
            exchange.sendResponseHeaders(200, body.length);
            try (var out = exchange.getResponseBody()) {
                out.write(body);
            }
        }));
        server.setExecutor(Executors.newFixedThreadPool(threads));
        server.start();
        System.out.println("listening on " + port);
    }
}
