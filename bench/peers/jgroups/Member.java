import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.ListIterator;
import java.util.Map;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.jgroups.BytesMessage;
import org.jgroups.JChannel;
import org.jgroups.Message;
import org.jgroups.Receiver;
import org.jgroups.conf.ConfiguratorFactory;
import org.jgroups.conf.ProtocolConfiguration;
import org.jgroups.conf.ProtocolStackConfigurator;
import org.jgroups.util.MessageBatch;

/**
 * A member of a group with a counter: `Member MEMBERS {throughput,latency}`.
 *
 * The last one to join answers each line of its input, `KIND COUNT`, with the seconds of one operation.
 * The stack is the tcp.xml of JGroups with SEQUENCER above flow control, as in its sequencer.xml; a
 * member that sends too much waits. For `latency` each message is sent at once and delivered on the thread that
 * received it, as in its tcp-low-latency.xml.
 */
public final class Member implements Receiver {
    private static final byte ADD = 0, BURST = 1, DONE = 2;
    private static final int WARM_UP = 20_000;

    private final int members;
    private final JChannel channel;
    private final LinkedBlockingQueue<Integer> bursts = new LinkedBlockingQueue<>();
    private volatile long value; // written by one thread at a time: what is ordered is delivered in order
    private volatile long wanted = Long.MAX_VALUE; // the value that a thread of ours waits for
    private int done;
    private long began, ended; // of the bursts of all members

    private Member(int members, boolean latency) throws Exception {
        this.members = members;
        channel = new JChannel(stack(latency));
        channel.setReceiver(this);
        channel.connect("bench");
    }

    private static ProtocolStackConfigurator stack(boolean latency) throws Exception {
        ProtocolStackConfigurator stack = ConfiguratorFactory.getStackConfigurator("tcp.xml");
        List<ProtocolConfiguration> protocols = stack.getProtocolStack();
        for (ListIterator<ProtocolConfiguration> it = protocols.listIterator(); it.hasNext(); ) {
            ProtocolConfiguration protocol = it.next();
            Map<String, String> properties = protocol.getProperties();
            switch (protocol.getProtocolName()) {
                case "TCP" -> {
                    if (latency) {
                        properties.put("bundler_type", "no-bundler");
                        properties.put("thread_pool.enabled", "false");
                    } else { // what is dropped is sent again half a second later
                        properties.put("bundler.drop_when_full", "false");
                    }
                }
                case "NON_BLOCKING_SENDS" -> it.remove();
                case "pbcast.GMS" -> properties.put("print_local_addr", "false");
                case "UFC" -> it.add(new ProtocolConfiguration("SEQUENCER"));
                default -> {}
            }
        }
        return stack;
    }

    public static void main(String[] arguments) throws Exception {
        Logger.getLogger("org.jgroups").setLevel(Level.SEVERE);
        int members = Integer.parseInt(arguments[0]);
        Member member = new Member(members, arguments[1].equals("latency"));
        boolean measures = member.channel.getView().size() == members;
        Thread writer = new Thread(member::takeBursts);
        writer.setDaemon(true);
        writer.start();
        if (measures) {
            member.answer();
        } else {
            System.out.println("up");
            Thread.currentThread().join(); // until the parent ends it
        }
        Runtime.getRuntime().halt(0);
    }

    // What is delivered, at every member in the same order.

    @Override
    public void receive(MessageBatch batch) {
        for (Message message : batch) {
            receive(message);
        }
    }

    @Override
    public void receive(Message message) {
        ByteBuffer body = ByteBuffer.wrap(message.getArray(), message.getOffset(), message.getLength());
        switch (body.get()) {
            case ADD -> add(body.getInt());
            case BURST -> bursts.add(body.getInt());
            default -> report(body.getLong(), body.getLong());
        }
    }

    private void add(int amount) {
        long now = value + amount;
        value = now;
        if (now >= wanted) {
            synchronized (this) {
                notifyAll();
            }
        }
    }

    private synchronized void report(long from, long to) {
        began = done == 0 ? from : Math.min(began, from);
        ended = done == 0 ? to : Math.max(ended, to);
        done += 1;
        notifyAll();
    }

    // What a member does.

    private void send(ByteBuffer body) throws Exception {
        channel.send(new BytesMessage(null, body.array()));
    }

    private void write() throws Exception {
        send(ByteBuffer.allocate(5).put(ADD).putInt(1));
    }

    private synchronized void awaitValue(long least) throws InterruptedException {
        wanted = least;
        while (value < least) {
            wait();
        }
        wanted = Long.MAX_VALUE;
    }

    private void takeBursts() {
        try {
            while (true) {
                int count = bursts.take();
                long from = System.nanoTime();
                for (int i = 0; i < count; i++) {
                    write();
                }
                send(ByteBuffer.allocate(17).put(DONE).putLong(from).putLong(System.nanoTime()));
            }
        } catch (Exception error) {
            error.printStackTrace();
            Runtime.getRuntime().halt(1);
        }
    }

    // What is measured.

    private void answer() throws Exception {
        waits(WARM_UP / 10);
        burst(WARM_UP);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ");
            int count = Integer.parseInt(words[1]);
            System.out.println(
                switch (words[0]) {
                    case "wait" -> waits(count);
                    case "burst" -> burst(count);
                    default -> reads(count);
                });
        }
    }

    private double waits(int count) throws Exception {
        long from = System.nanoTime();
        for (int i = 0; i < count; i++) {
            long next = value + 1;
            write();
            awaitValue(next);
        }
        return (System.nanoTime() - from) / 1e9 / count;
    }

    /** From the first beginning to where all is delivered here: what is last is last everywhere. */
    private double burst(int count) throws Exception {
        long all = value + (long) members * count;
        synchronized (this) {
            done = 0;
        }
        send(ByteBuffer.allocate(5).put(BURST).putInt(count));
        awaitValue(all);
        long to = System.nanoTime();
        synchronized (this) {
            while (done < members) {
                wait();
            }
            return (Math.max(to, ended) - began) / 1e9 / ((double) members * count);
        }
    }

    private double reads(int count) {
        long sum = 0;
        long from = System.nanoTime();
        for (int i = 0; i < count; i++) {
            sum += value; // volatile: each is a read
        }
        double seconds = (System.nanoTime() - from) / 1e9 / count;
        if (sum == 42) {
            System.err.println(sum); // else it need not be computed
        }
        return seconds;
    }
}
