package org.elasticsearch.node;

import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.elasticsearch.common.logging.LogConfigurator;
import org.elasticsearch.common.settings.KeyStoreWrapper;
import org.elasticsearch.common.settings.Settings;
import org.elasticsearch.env.Environment;
import org.elasticsearch.plugins.ClassPathPlugins;
import org.elasticsearch.plugins.PluginsLoader;
import org.elasticsearch.plugins.PluginsService;

/** One node on loopback, with settings as arguments: setting=value. It ends with its standard input, so that none outlives its test. */
public final class TestNode {
    public static void main(String[] args) throws Exception {
        Path home = Path.of(System.getProperty("es.path.home"));
        LogConfigurator.configureESLogging();
        Map<String, String> given = new HashMap<>();
        for (String arg : args) {
            int at = arg.indexOf('=');
            given.put(arg.substring(0, at), arg.substring(at + 1));
        }
        Settings.Builder settings = Settings.builder().put("path.home", home.toString());
        KeyStoreWrapper secrets = KeyStoreWrapper.create();
        String password = System.getenv("WAYBILL_TEST_PASSWORD");
        if (password != null) secrets.setString("bootstrap.password", password.toCharArray());
        settings.setSecureSettings(secrets);
        Environment environment = InternalSettingsPreparer.prepareEnvironment(settings.build(), given, home.resolve("config"), () -> "test");
        LogConfigurator.setNodeName("test");
        LogConfigurator.configureWithoutConfig(environment.settings());
        NodeServiceProvider services = new NodeServiceProvider() {
            @Override
            PluginsService newPluginService(Environment each, PluginsLoader loader) {
                return new ClassPathPlugins(each);
            }
        };
        Node node = new Node(NodeConstruction.prepareConstruction(environment, null, services, true));
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            try {
                node.close();
                node.awaitClose(10, TimeUnit.SECONDS);
            } catch (Exception thrown) {
                thrown.printStackTrace();
            }
        }));
        node.start();
        System.out.println("NODE-STARTED");
        while (System.in.read() >= 0) { }
        Runtime.getRuntime().halt(0);
    }
}
